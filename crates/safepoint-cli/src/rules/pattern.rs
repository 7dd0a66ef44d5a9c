//! Text with stars in it: `*` is any text, or any harmless text where it allows something; `**` is any text.

/// A pattern that was read.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Vec<Piece>);

/// Exhaustive: a letter, or one of the two stars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Letter(char),
    One,
    Two,
}

/// What `*` stands for. Exhaustive: where it allows something, what cannot begin another command and cannot climb out of
/// a directory; where it asks or denies, anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Star {
    Careful,
    Wide,
}

/// With these a shell begins another command, or puts one command's output into another.
const BEGINS_ANOTHER: [char; 12] = [';', '&', '|', '<', '>', '$', '`', '(', ')', '\n', '\r', '\0'];

impl Star {
    /// Whether it may stand for this letter after that one.
    fn takes(self, before: Option<char>, letter: char) -> bool {
        let climbs = before == Some('.') && letter == '.';
        self == Self::Wide || !(climbs || BEGINS_ANOTHER.contains(&letter))
    }
}

impl Pattern {
    pub(super) fn of(text: &str) -> Self {
        let mut pieces: Vec<Piece> = Vec::new();
        for letter in text.chars() {
            match (letter, pieces.last_mut()) {
                ('*', Some(last @ (Piece::One | Piece::Two))) => *last = Piece::Two,
                ('*', _) => pieces.push(Piece::One),
                (letter, _) => pieces.push(Piece::Letter(letter)),
            }
        }
        Self(pieces)
    }

    /// Whether all of the text is as the pattern says. The time is bounded by the product of both lengths.
    pub(super) fn fits(&self, text: &str, star: Star) -> bool {
        let end = self.0.len();
        let mut at = vec![false; end + 1];
        at[0] = true;
        self.pass_stars(&mut at);
        let mut before = None;
        for letter in text.chars() {
            let mut next = vec![false; end + 1];
            for (place, piece) in self.0.iter().enumerate().filter(|(place, _)| at[*place]) {
                match piece {
                    Piece::Letter(wanted) => next[place + 1] |= *wanted == letter,
                    Piece::One => next[place] |= star.takes(before, letter),
                    Piece::Two => next[place] = true,
                }
            }
            self.pass_stars(&mut next);
            at = next;
            before = Some(letter);
        }
        at[end]
    }

    /// A star may stand for nothing.
    fn pass_stars(&self, at: &mut [bool]) {
        for (place, piece) in self.0.iter().enumerate() {
            if at[place] && matches!(piece, Piece::One | Piece::Two) {
                at[place + 1] = true;
            }
        }
    }
}
