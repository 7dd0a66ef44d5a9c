/// What a line is made of.
pub enum Token<'a> {
    Word(&'a str),
    End,
}

/// The next token of a line, and what comes after it.
pub fn next(rest: &str) -> Option<(Token<'_>, &str)> {
    let end = rest.find(' ')?;
    let (word, rest) = rest.split_at(end);
    Some((Token::Word(word), &rest[1..]))
}

/// The last token of a line.
pub fn last(rest: &str) -> Token<'_> {
    match rest.rfind(' ') {
        Some(at) => Token::Word(&rest[at + 1..]),
        None => Token::Word(rest),
    }
}

/// How many words a line has.
pub fn count(line: &str) -> usize {
    line.split(' ').count()
}
