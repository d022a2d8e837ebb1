// The page is complete without this: here charts are drawn when they come into sight, tables fold, commands copy.
(function () {
  'use strict';
  const root = document.documentElement;
  for (const fold of document.querySelectorAll('details.fold')) fold.open = false;
  root.classList.add('ready');

  const dark = matchMedia('(prefers-color-scheme: dark)');
  const slim = matchMedia('(max-width: 640px)');
  const plots = [...document.querySelectorAll('.plot')];
  const isColour = key => /color$/i.test(key);

  // The drawing of a chart with the colours that its names have in the style sheet now.
  function painted(node, key, style) {
    if (typeof node === 'string') {
      return isColour(key) && node[0] === '$' ? style.getPropertyValue('--' + node.slice(1)).trim() : node;
    }
    if (Array.isArray(node)) {
      const plain = !isColour(key) && typeof node[0] !== 'object';
      return plain ? node : node.map(child => painted(child, key, style));
    }
    if (node === null || typeof node !== 'object') return node;
    return Object.fromEntries(Object.entries(node).map(([key, child]) => [key, painted(child, key, style)]));
  }

  function laid(base, over) {
    for (const [key, value] of Object.entries(over)) {
      const both = [value, base[key]].every(side => side && typeof side === 'object' && !Array.isArray(side));
      base[key] = both ? laid(base[key], value) : value;
    }
    return base;
  }

  function draw(plot) {
    const spec = JSON.parse(plot.nextElementSibling.textContent);
    if (slim.matches && spec.narrow) laid(spec.layout, spec.narrow);
    const order = spec.orders && spec.orders[plot.dataset.order || 0];
    if (order) Object.assign(spec.data[0], order);
    const style = getComputedStyle(root);
    const layout = painted(spec.layout, '', style);
    // A finger that moves over a chart wants to move the page.
    if (slim.matches) layout.dragmode = false;
    const options = {
      displaylogo: false,
      doubleClick: 'reset',
      modeBarButtonsToRemove: ['select2d', 'lasso2d', 'autoScale2d'],
      responsive: true,
      showTips: false,
      toImageButtonOptions: { format: 'svg', filename: plot.closest('figure').id || 'chart' },
      typesetMath: false,
    };
    return Plotly.newPlot(plot, painted(spec.data, '', style), layout, options);
  }

  // The library lies in the page as text until a chart is in sight: the page can be read a second sooner.
  function wake() {
    const script = document.createElement('script');
    script.textContent = document.getElementById('chart-library').textContent;
    document.head.append(script);
    script.remove();
    if (typeof Plotly === 'undefined') throw new Error('the chart library did not load');
  }

  function show(plot) {
    plot.classList.add('begun');
    try {
      if (typeof Plotly === 'undefined') wake();
      Promise.resolve(draw(plot)).then(() => plot.classList.add('drawn'), error => fail(plot, error));
    } catch (error) {
      fail(plot, error);
    }
  }

  function fail(plot, error) {
    plot.classList.add('failed');
    plot.textContent = 'This chart could not be drawn (' + error.message + '). Its data is below.';
    plot.closest('figure').querySelector('details').open = true;
  }

  // One chart a turn, so that the page stays quick while several come into sight.
  const waiting = [];
  function next() {
    const plot = waiting.shift();
    if (plot && !plot.classList.contains('begun')) show(plot);
    if (waiting.length) setTimeout(next);
  }
  const sight = new IntersectionObserver(entries => {
    for (const entry of entries.filter(entry => entry.isIntersecting)) {
      sight.unobserve(entry.target);
      if (waiting.push(entry.target) === 1) setTimeout(next);
    }
  }, { rootMargin: '500px 0px' });
  plots.forEach(plot => sight.observe(plot));

  const redraw = () => plots.filter(plot => plot.classList.contains('begun')).forEach(show);
  dark.addEventListener('change', redraw);
  slim.addEventListener('change', redraw);

  // Paper is white and everything on it is in sight.
  addEventListener('beforeprint', () => {
    root.classList.add('paper');
    plots.forEach(show);
  });
  addEventListener('afterprint', () => {
    root.classList.remove('paper');
    redraw();
  });

  for (const control of document.querySelectorAll('.switch')) {
    control.addEventListener('click', event => {
      const chosen = event.target.closest('button');
      if (!chosen) return;
      for (const button of control.children) button.setAttribute('aria-pressed', button === chosen);
      const plot = control.closest('figure').querySelector('.plot');
      plot.dataset.order = chosen.dataset.order;
      show(plot);
    });
  }

  for (const code of document.querySelectorAll('.command code')) {
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
    save.addEventListener('click', () => {
      const json = document.querySelector('script#assay-report').textContent;
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([json], { type: 'application/json' }));
      link.download = 'assay-report.json';
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }
})();
