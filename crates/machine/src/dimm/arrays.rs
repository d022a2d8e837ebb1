//! Slots that arrays announce, and the devices that are listed for them.

use std::collections::BTreeMap;

/// What an array announces and has.
#[derive(Clone, Copy, Default)]
struct Array {
    announced: u32,
    modules: u32,
    /// Listed for it, and no modules: a ROM in the modules' array.
    others: u32,
}

impl Array {
    fn missing(&self) -> Missing {
        let empty = self.announced.saturating_sub(self.modules);
        Missing { slots: empty.saturating_sub(self.others), perhaps: empty.min(self.others) }
    }
}

/// Slots that are announced and not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Missing {
    pub slots: u32,
    /// Those in whose place a device stands that is no module: whether the array counts it is not
    /// known.
    pub perhaps: u32,
}

/// The arrays of modules.
#[derive(Default)]
pub(super) struct Arrays {
    by_handle: BTreeMap<String, Array>,
    /// What arrays without a handle announce, and devices whose array is not listed.
    unnamed: Array,
}

impl Arrays {
    pub fn announce(&mut self, handle: Option<String>, slots: u32) {
        match handle {
            Some(handle) => {
                self.by_handle.insert(handle, Array { announced: slots, ..Array::default() });
            }
            None => self.unnamed.announced = self.unnamed.announced.saturating_add(slots),
        }
    }

    /// Counts a device of the array with this handle.
    pub fn list(&mut self, handle: Option<&str>, is_module: bool) {
        let is_named = handle.is_some();
        let array = handle.and_then(|handle| self.by_handle.get_mut(handle));
        match (array, is_module) {
            (Some(array), true) => array.modules += 1,
            (Some(array), false) => array.others += 1,
            (None, true) => self.unnamed.modules += 1,
            // Of an array that is another one than those of modules.
            (None, false) if is_named => {}
            (None, false) => self.unnamed.others += 1,
        }
    }

    /// Of each array, as far as devices name theirs.
    pub fn missing(&self) -> Missing {
        let mut sum = Missing::default();
        let mut left = self.unnamed;
        for one in self.by_handle.values().map(Array::missing) {
            sum.slots = sum.slots.saturating_add(one.slots);
            sum.perhaps = sum.perhaps.saturating_add(one.perhaps);
        }
        // A module whose array is not listed may be of any.
        left.announced = left.announced.saturating_add(sum.slots);
        let own = left.missing();
        Missing { slots: own.slots, perhaps: sum.perhaps.saturating_add(own.perhaps) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_no_module_fills_no_slot() {
        // (array, whether a module), of arrays "1" with four slots and "2" with two.
        let missing = |listed: &[(Option<&str>, bool)]| {
            let mut arrays = Arrays::default();
            arrays.announce(Some("1".to_string()), 4);
            arrays.announce(Some("2".to_string()), 2);
            listed.iter().for_each(|(handle, is_module)| arrays.list(*handle, *is_module));
            let found = arrays.missing();
            (found.slots, found.perhaps)
        };
        let six =
            [(Some("1"), true), (Some("1"), true), (Some("1"), true), (Some("2"), true), (Some("2"), true)];
        let with = |more: &[(Option<&'static str>, bool)]| missing(&[&six[..], more].concat());
        assert_eq!(with(&[]), (1, 0));
        assert_eq!(with(&[(Some("1"), true)]), (0, 0));
        assert_eq!(with(&[(Some("1"), false)]), (0, 1));
        assert_eq!(with(&[(Some("2"), false)]), (1, 0), "another array's ROM");
        assert_eq!(with(&[(Some("9"), false)]), (1, 0), "a ROM of an array that is not listed");
        assert_eq!(with(&[(None, true)]), (0, 0));
        assert_eq!(with(&[(None, false)]), (0, 1));
        assert_eq!(with(&[(Some("1"), true), (Some("1"), false)]), (0, 0), "beside all its slots");
    }
}
