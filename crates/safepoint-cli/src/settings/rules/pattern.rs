//! Text with stars in it: `*` and `**`.

/// A pattern that was read.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(super) text: String,
    pub(super) pieces: Vec<Piece>,
}

/// Exhaustive: a letter, or one of the two stars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Letter(char),
    One,
    Two,
}

impl Pattern {
    pub(crate) fn of(text: &str) -> Self {
        let mut pieces: Vec<Piece> = Vec::new();
        for letter in text.chars() {
            match (letter, pieces.last_mut()) {
                ('*', Some(last @ (Piece::One | Piece::Two))) => *last = Piece::Two,
                ('*', _) => pieces.push(Piece::One),
                (letter, _) => pieces.push(Piece::Letter(letter)),
            }
        }
        Self { text: text.to_owned(), pieces }
    }

    /// Whether it is as the pattern says, where `*` stands for letters that `takes` accepts and `**` for all.
    pub(crate) fn is_like(&self, text: &str, takes: impl Fn(char) -> bool) -> bool {
        let end = self.pieces.len();
        let mut at = vec![false; end + 1];
        at[0] = true;
        self.pass_stars(&mut at);
        for letter in text.chars() {
            let mut next = vec![false; end + 1];
            for (place, piece) in self.pieces.iter().enumerate().filter(|(place, _)| at[*place]) {
                match piece {
                    Piece::Letter(wanted) => next[place + 1] |= *wanted == letter,
                    Piece::One => next[place] |= takes(letter),
                    Piece::Two => next[place] = true,
                }
            }
            self.pass_stars(&mut next);
            at = next;
        }
        at[end]
    }

    /// A star may stand for nothing.
    fn pass_stars(&self, at: &mut [bool]) {
        for (place, piece) in self.pieces.iter().enumerate() {
            if at[place] && matches!(piece, Piece::One | Piece::Two) {
                at[place + 1] = true;
            }
        }
    }
}

/// How often a text goes up: each `..`, wherever it stands, but for one between two letters or digits, as of a range
/// (`v1..v2`). One that a star matched and that goes up more often than its pattern climbs.
pub(crate) fn climbs(text: &str) -> usize {
    let is_of_name = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let ups = text.match_indices("..");
    ups.filter(|(at, up)| {
        let (before, behind) = (text[..*at].chars().next_back(), text[at + up.len()..].chars().next());
        !(is_of_name(before) && is_of_name(behind))
    })
    .count()
}
