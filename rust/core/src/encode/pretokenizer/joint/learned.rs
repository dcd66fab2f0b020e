//! The table of joint states, filled in as texts need it.
//!
//! A *joint class* is a list of classes, one in each stage; a *joint state* is how far all stages have come
//! ([`StageState`]). A transition from a state on a class is computed when a text first needs it, and cached: one entry
//! says where pieces end and which state is next. So a text is split with one look-up per character, however many
//! stages there are.
//!
//! Complexity: a look-up is O(1). Learning an entry may take some ten thousand steps, so every byte of text earns a
//! fraction of an entry, and no more is learned than has been earned. Ordinary text makes 10 to 300 states with fewer
//! than a thousand entries. Memory: at most [`MAX_STATES`] rows of 256 bytes and what the stages hold in those states,
//! less than 2 MiB in total, usually about 50 KiB.

use std::collections::HashMap;

use super::stage::{Event, MAX_HELD, Stage, StageState, Walk};
use crate::work::memory;

/// The length of a row.
pub(super) const STRIDE: usize = 64;
/// Characters from the first to the last position of [`Transition::near_ends`].
pub(super) const NEAR: usize = 4;
/// The class of the end of the text.
pub(super) const END: u8 = 62;
/// The class of characters that have none yet.
const NO_CLASS: u8 = 63;
/// The most states. If a text needs more, all are dropped before a later text.
const MAX_STATES: usize = 1024;
/// Characters per page.
const PAGE: usize = 128;
const NUM_PAGES: usize = 0x11_0000 / PAGE;
/// How many bytes of text earn an entry.
const ENTRY_COST: usize = 512;
/// The credit granted before the first text, in bytes, and the most that can be saved up.
const MAX_CREDIT: usize = 2048 * ENTRY_COST;

/// An entry of the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Transition {
    /// The row of the next state.
    next: u16,
    /// Bits 0 to 4: see [`Transition::near_ends`]. Bit 5: the state would be the same if the text started with this
    /// character. Bit 6: the next state stays the same at every letter from `a` to `z`, and no piece ends. Bit 7: bits
    /// 0 to 4 do not say where pieces end. Bits 8 to 15: the number of the list of ends, or why there is none.
    flags: u16,
}

impl Transition {
    const SPECIAL: u16 = 0x80;
    const NOT_LEARNED: Self = Self { next: 0, flags: 0xFF << 8 | Self::SPECIAL };
    /// Too many characters would have to be held.
    const GIVEN_UP: Self = Self { next: 0, flags: 0xFE << 8 | Self::SPECIAL };
    /// Greater than the number of any list of ends. List 0 stands for none.
    const MAX_LISTS: usize = 0xFE;

    /// Whether [`Transition::near_ends`] is not enough to say where pieces end.
    #[inline(always)]
    pub(super) fn is_special(self) -> bool {
        self.flags & Self::SPECIAL != 0
    }

    /// Whether no piece ends, or only one before this character.
    #[inline(always)]
    pub(super) fn is_simple(self) -> bool {
        self.flags & (Self::SPECIAL | 0x17) == 0
    }

    /// Where pieces end, as bits: the highest one stands for the end of the character, and each lower one for one
    /// character before.
    #[inline(always)]
    pub(super) fn near_ends(self) -> u64 {
        u64::from(self.flags & 0x1F)
    }

    #[inline(always)]
    pub(super) fn restarts(self) -> bool {
        self.flags & 0x20 != 0
    }

    #[inline(always)]
    pub(super) fn loops_on_letters(self) -> bool {
        self.flags & 0x40 != 0
    }

    #[inline(always)]
    pub(super) fn next_row(self) -> usize {
        self.next.into()
    }

    #[inline(always)]
    fn list(self) -> usize {
        (self.flags >> 8).into()
    }
}

/// The class of each ASCII character. Other bytes have none, and for that there are only special entries.
#[derive(Debug)]
struct ByteClasses([u8; 256]);

impl Default for ByteClasses {
    fn default() -> Self {
        Self([NO_CLASS; 256])
    }
}

/// What has been learned for one family. It belongs to the splitter that it is first used with.
#[derive(Debug, Default)]
pub struct Learned {
    table: Vec<Transition>,
    /// The states of all stages in each joint state. State 0 is the one at the start of a text.
    states: Vec<Vec<StageState>>,
    /// Whether a state stays the same at every letter from `a` to `z`, and no piece ends.
    loops: Vec<bool>,
    numbers: HashMap<Vec<StageState>, usize>,
    /// Where pieces end, counted in characters back from the end of the latest one, furthest first.
    lists: Vec<Vec<usize>>,
    /// For each joint class, the class in each stage.
    classes: Vec<Vec<u8>>,
    bytes: ByteClasses,
    /// The classes of the letters `a` to `z`.
    letters: Vec<u8>,
    /// The class of code point `c` is `page_classes[pages[c / PAGE] * PAGE + c % PAGE]`. Page 0 stands for pages not
    /// needed so far.
    pages: Vec<u16>,
    page_classes: Vec<u8>,
    credit: usize,
    /// Whether there was no room for a state.
    is_full: bool,
}

impl Learned {
    /// Starts a text.
    pub(super) fn start(&mut self, stages: &[Stage]) {
        if self.states.is_empty() {
            for byte in 0..0x80_u8 {
                self.bytes.0[usize::from(byte)] = self.class_of(stages, byte.into());
            }
            self.letters = (b'a'..=b'z').map(|byte| self.byte_class(byte)).collect();
            self.letters.sort_unstable();
            self.letters.dedup();
            self.pages = memory::filled(NUM_PAGES, 0);
            self.page_classes = memory::filled(PAGE, NO_CLASS);
            self.credit = MAX_CREDIT;
            self.forget(stages);
        } else if self.is_full && self.credit == MAX_CREDIT {
            self.forget(stages);
        }
    }

    /// Earns credit for this many bytes of text.
    #[inline(always)]
    pub(super) fn earn(&mut self, num_bytes: usize) {
        self.credit = (self.credit + num_bytes).min(MAX_CREDIT);
    }

    #[inline(always)]
    pub(super) fn byte_class(&self, byte: u8) -> u8 {
        self.bytes.0[usize::from(byte)]
    }

    #[inline(always)]
    pub(super) fn class(&self, code_point: u32) -> u8 {
        let page = self.pages.get(code_point as usize / PAGE).copied().unwrap_or_default();
        self.page_classes[usize::from(page) * PAGE + code_point as usize % PAGE]
    }

    #[inline(always)]
    pub(super) fn entry(&self, row: usize, class: u8) -> Transition {
        self.table[row + usize::from(class)]
    }

    /// Where pieces end, counted in characters back from the end of the latest one, furthest first. `None` if that is
    /// not learned.
    #[inline(always)]
    pub(super) fn ends(&self, entry: Transition) -> Option<&[usize]> {
        self.lists.get(entry.list()).map(Vec::as_slice)
    }

    /// The class of a character beyond ASCII, which may not have one yet.
    pub(super) fn learn_class(&mut self, stages: &[Stage], code_point: u32) -> u8 {
        let page = code_point as usize / PAGE;
        if self.pages.get(page) == Some(&0) {
            let number = self.page_classes.len() / PAGE;
            for at in 0..PAGE {
                let class = self.class_of(stages, (page * PAGE + at) as u32);
                memory::push(&mut self.page_classes, class);
            }
            self.pages[page] = number as u16;
        }
        self.class(code_point)
    }

    /// The joint class of a code point. If there are too many classes, some characters have none.
    fn class_of(&mut self, stages: &[Stage], code_point: u32) -> u8 {
        let classes: Vec<u8> = stages.iter().map(|stage| stage.class(code_point)).collect();
        match self.classes.iter().position(|known| *known == classes) {
            Some(class) => class as u8,
            None if self.classes.len() < usize::from(END) => {
                self.classes.push(classes);
                self.classes.len() as u8 - 1
            }
            None => NO_CLASS,
        }
    }

    /// Learns the entry for a state and a class. Returns whether it is now known.
    pub(super) fn learn(&mut self, stages: &[Stage], row: usize, class: u8) -> bool {
        let known = self.entry(row, class);
        if known != Transition::NOT_LEARNED || class == NO_CLASS || self.credit < ENTRY_COST {
            return self.ends(known).is_some();
        }
        self.credit -= ENTRY_COST;

        let event = if class == END { Event::End } else { Event::Char(class) };
        let before = self.states[row / STRIDE].clone();
        let Some((after, ends)) = self.take(stages, before, event) else {
            self.table[row + usize::from(class)] = Transition::GIVEN_UP;
            return false;
        };
        let start = self.states[0].clone();
        let restarts = self.take(stages, start, event).is_some_and(|(fresh, _)| fresh == after);

        let are_near = class != END && ends.iter().all(|&distance| distance <= NEAR);
        let near = if are_near { ends.iter().fold(0, |near, distance| near | 1 << (NEAR - distance)) } else { 0 };
        let is_special = !are_near && !ends.is_empty();
        let list = self.number_of_list(ends);
        if list == Transition::MAX_LISTS || self.states.len() == MAX_STATES && !self.numbers.contains_key(&after) {
            self.is_full = true;
            return false;
        }
        let next = self.number_of_state(stages, after);
        let flags = near | u16::from(restarts) << 5 | u16::from(self.loops[next]) << 6 | u16::from(is_special) << 7;
        self.table[row + usize::from(class)] =
            Transition { next: (next * STRIDE) as u16, flags: flags | (list as u16) << 8 };
        true
    }

    /// The state after an event, and where pieces end; `None` if too many characters would have to be held.
    fn take(
        &self,
        stages: &[Stage],
        mut state: Vec<StageState>,
        event: Event,
    ) -> Option<(Vec<StageState>, Vec<usize>)> {
        let mut walk = Walk { stages, classes: &self.classes, states: &mut state, num_passed: 0, ends: Vec::new() };
        walk.take(0, event);
        let num_left = walk.num_held();
        let num_passed = walk.num_passed;
        let ends = walk.ends.iter().map(|end| num_passed - end + num_left).collect();
        (num_left <= MAX_HELD).then_some((state, ends))
    }

    fn number_of_list(&mut self, ends: Vec<usize>) -> usize {
        let known = self.lists.iter().position(|list| *list == ends);
        known.unwrap_or_else(|| {
            let number = self.lists.len();
            if number < Transition::MAX_LISTS {
                self.lists.push(ends);
            }
            number
        })
    }

    fn number_of_state(&mut self, stages: &[Stage], state: Vec<StageState>) -> usize {
        if let Some(&number) = self.numbers.get(&state) {
            return number;
        }
        let number = self.states.len();
        let stays = |class: u8| {
            let after = self.take(stages, state.clone(), Event::Char(class));
            after.is_some_and(|(after, ends)| after == state && ends.is_empty())
        };
        let loops = self.letters.iter().all(|&class| stays(class));
        self.loops.push(loops);
        self.states.push(state.clone());
        self.numbers.insert(state, number);
        memory::reserve(&mut self.table, STRIDE);
        self.table.resize(self.states.len() * STRIDE, Transition::NOT_LEARNED);
        number
    }

    /// Drops all states except the first.
    fn forget(&mut self, stages: &[Stage]) {
        self.is_full = false;
        self.table.clear();
        self.states.clear();
        self.loops.clear();
        self.numbers.clear();
        self.lists.clear();
        self.number_of_list(Vec::new());
        self.number_of_state(stages, stages.iter().map(StageState::new).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::{Learned, NUM_PAGES, StageState, Transition};

    impl Learned {
        /// Spends what has been earned.
        pub(crate) fn spend(&mut self) {
            self.credit = 0;
        }

        pub(crate) fn heap_bytes(&self) -> usize {
            let of_state = |state: &Vec<StageState>| 2 * state.iter().map(StageState::bytes).sum::<usize>();
            let states = self.states.iter().map(of_state).sum::<usize>();
            let lists = self.lists.iter().map(|list| 2 * list.capacity() * size_of::<usize>()).sum::<usize>();
            self.table.capacity() * size_of::<Transition>()
                + states
                + lists
                + self.page_classes.capacity()
                + NUM_PAGES * 2
        }
    }
}
