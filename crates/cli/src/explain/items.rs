//! Rust source cut into its top-level items, with the paths that each item names. `syn` reads the
//! items; paths are taken from the tokens, because code inside of macros has some, too.

use std::ops::Range;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::{Type, UseTree};

/// A top-level item of a file: its doc comment and attributes, and itself.
pub struct Item {
    /// What it is called; an `impl` is called as its type, a macro's call as the first word that it
    /// is given. Empty: `use` and `mod` lines.
    pub name: String,
    /// Lines of the file, from 0.
    pub lines: Range<usize>,
    pub text: String,
    pub is_impl: bool,
}

/// A path in an item's code: `kernels::add_chain`, `Self::run` or a bare name.
pub type Path = Vec<String>;

/// A name that a `use` line brings in, or a glob (`name` is `*`).
pub struct Import {
    pub name: String,
    pub path: Path,
}

/// The top-level items of a file without its tests, and what its `use` lines bring in; nothing of a
/// text that is not Rust.
pub fn parse(text: &str) -> (Vec<Item>, Vec<Import>) {
    let (mut items, mut imports) = (Vec::new(), Vec::new());
    for item in syn::parse_file(text).map(|file| file.items).unwrap_or_default() {
        let span = item.span();
        let text = &text[span.byte_range()];
        if text.starts_with("#[cfg(test)]") {
            continue;
        }
        if let syn::Item::Use(item) = &item {
            import(&item.tree, &[], &mut imports);
        }
        items.push(Item {
            name: name(&item),
            lines: span.start().line - 1..span.end().line,
            text: text.to_string(),
            is_impl: matches!(item, syn::Item::Impl(_)),
        });
    }
    (items, imports)
}

fn name(item: &syn::Item) -> String {
    let ident = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Impl(item) => match &*item.self_ty {
            Type::Path(of) => {
                return of.path.segments.last().map_or_else(String::new, |last| last.ident.to_string());
            }
            _ => return String::new(),
        },
        syn::Item::Macro(item) => match (&item.ident, item.mac.tokens.clone().into_iter().next()) {
            (Some(ident), _) => ident,
            (None, Some(TokenTree::Ident(first))) => return first.to_string(),
            _ => return String::new(),
        },
        _ => return String::new(),
    };
    ident.to_string()
}

/// One branch of a `use` tree.
fn import(tree: &UseTree, above: &[String], imports: &mut Vec<Import>) {
    let below = |name: &syn::Ident| match name.to_string() {
        own if own == "self" && !above.is_empty() => above.to_vec(),
        own => [above, &[own]].concat(),
    };
    match tree {
        UseTree::Path(path) => import(&path.tree, &below(&path.ident), imports),
        UseTree::Name(name) => {
            let path = below(&name.ident);
            imports.push(Import { name: path.last().cloned().unwrap_or_default(), path });
        }
        UseTree::Rename(name) => {
            imports.push(Import { name: name.rename.to_string(), path: below(&name.ident) });
        }
        UseTree::Glob(_) => imports.push(Import { name: "*".to_string(), path: above.to_vec() }),
        UseTree::Group(group) => group.items.iter().for_each(|tree| import(tree, above, imports)),
    }
}

/// A token that matters to paths.
#[derive(PartialEq)]
enum Token {
    Word(String),
    Mark(char),
}

/// All tokens in order, those inside of brackets among them; literals and lifetimes are left out.
fn tokens(stream: TokenStream, all: &mut Vec<Token>) {
    let mut trees = stream.into_iter();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Ident(word) => all.push(Token::Word(word.to_string())),
            TokenTree::Punct(mark) if mark.as_char() == '\'' => {
                trees.next();
            }
            TokenTree::Punct(mark) => all.push(Token::Mark(mark.as_char())),
            TokenTree::Group(group) => {
                all.push(Token::Mark('('));
                tokens(group.stream(), all);
                all.push(Token::Mark(')'));
            }
            TokenTree::Literal(_) => all.push(Token::Mark('"')),
        }
    }
}

/// Words before a name that is being declared.
const DECLARING: [&str; 5] = ["fn", "let", "mut", "mod", "for"];

/// The paths that code names, in order; fields, methods and what is being declared are not among
/// them.
pub fn paths(code: &str) -> Vec<Path> {
    let mut all = Vec::new();
    tokens(code.parse().unwrap_or_default(), &mut all);
    let is_mark =
        |place: Option<usize>, mark: char| place.and_then(|place| all.get(place)) == Some(&Token::Mark(mark));
    let mut paths: Vec<Path> = Vec::new();
    let mut at = 0;
    while let Some(token) = all.get(at) {
        let before = at.checked_sub(1);
        at += 1;
        let Token::Word(first) = token else { continue };
        let mut path = vec![first.clone()];
        while is_mark(Some(at), ':')
            && is_mark(Some(at + 1), ':')
            && let Some(Token::Word(next)) = all.get(at + 2)
        {
            path.push(next.clone());
            at += 3;
        }
        let is_field = path.len() == 1 && is_mark(Some(at), ':') && !is_mark(Some(at + 1), ':');
        // After two dots stands the base of a struct or the end of a range, no field.
        let is_method = is_mark(before, '.') && !is_mark(before.and_then(|place| place.checked_sub(1)), '.');
        let is_declaring = |word: &String| DECLARING.contains(&word.as_str());
        let is_declared =
            before.is_some_and(|place| matches!(&all[place], Token::Word(word) if is_declaring(word)));
        if !is_field && !is_method && !is_declared && !is_declaring(first) {
            paths.push(path);
        }
    }
    paths
}
