//! What a name means in a module: an item or a module of this crate, or something outside.

use super::tree::{Tree, is_ours};

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Meant {
    Module(usize),
    /// Of this module, the item at this place.
    Item(usize, usize),
    /// Of another crate.
    Outside(String),
}

/// One name that a `use` brings in.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) path: Vec<String>,
    /// The name here; none for all names of the path.
    pub(crate) name: Option<String>,
}

/// The names that a `use` brings in.
pub(crate) fn leaves(tree: &syn::UseTree) -> Vec<Leaf> {
    let mut found = Vec::new();
    collect(tree, &mut Vec::new(), &mut found);
    found
}

fn collect(tree: &syn::UseTree, before: &mut Vec<String>, found: &mut Vec<Leaf>) {
    let leaf = |before: &[String], last: Option<String>, name: Option<String>| {
        let path = before.iter().cloned().chain(last.filter(|last| last != "self")).collect();
        Leaf { path, name }
    };
    match tree {
        syn::UseTree::Path(path) => {
            before.push(path.ident.to_string());
            collect(&path.tree, before, found);
            before.pop();
        }
        syn::UseTree::Name(name) => {
            let last = name.ident.to_string();
            let here = if last == "self" { before.last().cloned() } else { Some(last.clone()) };
            found.push(leaf(before, Some(last), here));
        }
        syn::UseTree::Rename(name) => {
            found.push(leaf(before, Some(name.ident.to_string()), Some(name.rename.to_string())));
        }
        syn::UseTree::Glob(_) => found.push(leaf(before, None, None)),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| collect(tree, before, found)),
    }
}

/// The name under which an item is known in its module.
pub(crate) fn name(item: &syn::Item) -> Option<String> {
    let ident = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// How many `use` may lead to one another.
const DEEPEST: usize = 16;

impl Tree {
    /// Everything that the path means in the module: a type and a function may have one name.
    pub(crate) fn meant(&self, module: usize, path: &[String]) -> Vec<Meant> {
        self.path(module, path, DEEPEST)
    }

    fn path(&self, module: usize, path: &[String], deepest: usize) -> Vec<Meant> {
        let Some((first, rest)) = path.split_first() else { return vec![Meant::Module(module)] };
        let Some(deepest) = deepest.checked_sub(1) else { return Vec::new() };
        let start = match first.as_str() {
            "crate" => vec![Meant::Module(0)],
            "self" => vec![Meant::Module(module)],
            "super" => self.modules[module].parent.map(Meant::Module).into_iter().collect(),
            name => self.name(module, name, deepest),
        };
        if start.is_empty() {
            return vec![Meant::Outside(path.join("::"))];
        }
        let within = |start: Meant| match start {
            _ if rest.is_empty() => vec![start],
            Meant::Module(module) => self.within(module, rest, deepest),
            // A function has nothing below it; a module of its name has.
            Meant::Item(module, place) if matches!(self.modules[module].items[place], syn::Item::Fn(_)) => {
                Vec::new()
            }
            // A variant: it belongs to its enum.
            Meant::Item(..) => vec![start],
            Meant::Outside(path) => vec![Meant::Outside(format!("{path}::{}", rest.join("::")))],
        };
        start.into_iter().flat_map(within).collect()
    }

    /// A path below a module, where no name of another crate can stand.
    fn within(&self, module: usize, path: &[String], deepest: usize) -> Vec<Meant> {
        let found = self.path(module, path, deepest);
        found.into_iter().filter(|meant| *meant != Meant::Outside(path.join("::"))).collect()
    }

    fn name(&self, module: usize, wanted: &str, deepest: usize) -> Vec<Meant> {
        let here = &self.modules[module];
        let is_it = |child: &&usize| self.modules[**child].path.last().is_some_and(|name| name == wanted);
        let mut found: Vec<Meant> =
            here.children.iter().filter(is_it).map(|child| Meant::Module(*child)).collect();
        let items = here.items.iter().enumerate();
        found.extend(
            items
                .filter(|(_, item)| name(item).as_deref() == Some(wanted))
                .map(|(place, _)| Meant::Item(module, place)),
        );
        // Beside a module of the name there may be a function that a `use` brings in.
        if found.iter().any(|meant| matches!(meant, Meant::Item(..))) {
            return found;
        }
        let uses = here.items.iter().filter_map(|item| match item {
            syn::Item::Use(item) if is_ours(&item.attrs) => Some(leaves(&item.tree)),
            _ => None,
        });
        for leaf in uses.flatten() {
            match &leaf.name {
                // `use serde;` and the like would look for itself.
                Some(name) if name == wanted && leaf.path.as_slice() != [wanted] => {
                    found.extend(self.path(module, &leaf.path, deepest));
                }
                Some(_) => {}
                None => {
                    for meant in self.path(module, &leaf.path, deepest) {
                        if let Meant::Module(of) = meant
                            && of != module
                        {
                            found.extend(self.name(of, wanted, deepest));
                        }
                    }
                }
            }
        }
        found
    }
}
