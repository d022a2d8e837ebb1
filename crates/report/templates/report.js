// The page is complete without this: here it is searched, copied from, and its charts are read off by pointer.
(function () {
  'use strict';
  const root = document.documentElement;
  const all = (what, where) => [...(where || document).querySelectorAll(what)];

  // Search and "Only problems": rows and findings that do not fit are hidden, and all that is neither.
  const search = document.getElementById('search');
  const only = document.getElementById('only');
  const nothing = document.getElementById('nothing');
  let sought = false;
  // What was open before the search, and all rows with what they are found by: read at the first search.
  let before = [];
  let rows = null;

  function words(row) {
    const key = row.querySelector('[title]');
    return (row.textContent + ' ' + (key ? key.title : '')).toLowerCase();
  }

  function index() {
    rows = all('main tbody tr').map(row => ({ row, heading: !!row.querySelector('th.group'), words: words(row) }));
  }

  function seek() {
    const text = search.value.trim().toLowerCase();
    const on = text !== '' || only.checked;
    if (on && !sought) before = all('main details').map(fold => [fold, fold.open]);
    if (on && !rows) index();
    root.classList.toggle('seeking', on);
    if (rows) for (const { row, heading, words } of rows) {
      row.hidden = on && (heading || !words.includes(text) || (only.checked && !('p' in row.dataset)));
    }
    for (const find of all('.find')) {
      find.hidden = on && (!find.textContent.toLowerCase().includes(text) || (only.checked && find.classList.contains('note')));
    }
    const left = '.find:not([hidden]), tbody tr:not([hidden])';
    let found = false;
    for (const part of all('main section, main details.t, main .card')) {
      const some = part.matches('.find') || part.querySelector(left) !== null;
      part.classList.toggle('out', on && !some);
      found = found || some;
    }
    if (on) for (const fold of all('main details.t, main details.inner')) fold.open = fold.querySelector(left) !== null;
    if (!on && sought) for (const [fold, open] of before) fold.open = open;
    nothing.hidden = !on || found;
    sought = on;
  }
  search.addEventListener('input', seek);
  only.addEventListener('change', seek);

  document.getElementById('open-all').addEventListener('click', () => all('main details.t').forEach(fold => { fold.open = true; }));
  document.getElementById('close-all').addEventListener('click', () => all('main details').forEach(fold => { fold.open = false; }));
  document.getElementById('theme').addEventListener('click', () => {
    const now = root.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
    root.dataset.theme = now === 'dark' ? 'light' : 'dark';
  });

  // What a link names is opened.
  function reveal() {
    const named = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!named) return;
    for (let at = named; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
    const first = named.matches('section.topic') && named.querySelector('details.t');
    if (first && !named.querySelector('details.t[open]')) first.open = true;
    named.scrollIntoView();
  }
  addEventListener('hashchange', reveal);
  reveal();

  // The section that is in sight, in the sidebar.
  const links = all('nav a');
  const sight = new IntersectionObserver(entries => {
    for (const entry of entries.filter(entry => entry.isIntersecting)) {
      for (const link of links) link.classList.toggle('on', link.hash === '#' + entry.target.id);
    }
  }, { rootMargin: '-10% 0px -80% 0px' });
  all('main section').forEach(section => sight.observe(section));

  // The order of a matrix.
  for (const control of all('.switch')) {
    control.addEventListener('click', event => {
      const chosen = [...control.children].indexOf(event.target.closest('button'));
      if (chosen < 0) return;
      all('button', control).forEach((button, at) => button.setAttribute('aria-pressed', at === chosen));
      all('.drawing', control.closest('figure')).forEach((drawing, at) => { drawing.hidden = at !== chosen; });
    });
  }

  // The point nearest to the pointer is named.
  const tip = document.getElementById('tip');
  for (const plot of all('svg.lines')) {
    let points = null;
    let lit = null;
    const clear = () => {
      tip.hidden = true;
      if (lit) lit.classList.remove('lit');
      lit = null;
    };
    plot.addEventListener('pointermove', event => {
      points = points || all('circle.pt', plot);
      const far = point => {
        const box = point.getBoundingClientRect();
        return Math.hypot(box.x + box.width / 2 - event.clientX, (box.y + box.height / 2 - event.clientY) / 2);
      };
      const near = points.reduce((best, point) => (best && best.far <= far(point) ? best : { point, far: far(point) }), null);
      clear();
      if (!near || near.far > 60) return;
      lit = near.point;
      lit.classList.add('lit');
      const box = lit.getBoundingClientRect();
      tip.textContent = lit.querySelector('title').textContent;
      tip.hidden = false;
      tip.style.left = Math.max(4, Math.min(innerWidth - tip.offsetWidth - 4, box.x - tip.offsetWidth / 2)) + 'px';
      tip.style.top = box.y - tip.offsetHeight - 8 + 'px';
    });
    plot.addEventListener('pointerleave', clear);
  }

  // A chart in a window over the page, as wide as that allows.
  const larger = document.getElementById('larger');
  let place = null;

  function shut() {
    larger.close();
    if (!place) return;
    const figure = larger.querySelector('figure');
    figure.className = place.className;
    place.replaceWith(figure);
    place = null;
    document.body.append(tip);
    figure.querySelector('.larger').focus();
  }

  for (const figure of all('figure.chart').filter(figure => figure.querySelector('.lines, .heat, .map'))) {
    const title = figure.querySelector('h3').textContent;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'larger';
    button.textContent = 'Larger';
    button.setAttribute('aria-label', 'Larger: ' + title);
    button.addEventListener('click', () => {
      place = document.createElement('div');
      place.className = figure.className;
      place.style.height = figure.offsetHeight + 'px';
      figure.replaceWith(place);
      figure.classList.remove('half');
      // What is outside an open window lies below it.
      larger.append(figure, tip);
      larger.setAttribute('aria-label', title);
      larger.showModal();
    });
    figure.querySelector('figcaption').append(button);
  }
  larger.querySelector('button').addEventListener('click', shut);
  larger.addEventListener('close', shut);
  larger.addEventListener('click', event => { if (event.target === larger) shut(); });
  addEventListener('beforeprint', shut);

  for (const code of all('.cmd code')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = 'Copy';
    button.addEventListener('click', () => {
      getSelection().selectAllChildren(code);
      const copied = navigator.clipboard ? navigator.clipboard.writeText(code.textContent) : Promise.reject();
      copied.catch(() => document.execCommand('copy')).then(() => { button.textContent = 'Copied'; });
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    });
    code.after(button);
  }

  const save = document.getElementById('save');
  if (save) {
    save.addEventListener('click', async () => {
      const packed = atob(document.querySelector('script#assay-report').textContent);
      const gzip = new Blob([Uint8Array.from(packed, c => c.charCodeAt(0))]);
      // An old browser saves what it cannot unpack.
      const unpacks = 'DecompressionStream' in window;
      const json = unpacks ? await new Response(gzip.stream().pipeThrough(new DecompressionStream('gzip'))).blob() : gzip;
      const link = document.createElement('a');
      link.href = URL.createObjectURL(json);
      link.download = unpacks ? 'assay-report.json' : 'assay-report.json.gz';
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }
})();
