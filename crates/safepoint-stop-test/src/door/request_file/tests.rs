//! What a request file says, and what it must not.

use super::*;

/// S15.10: a file that cannot be right is refused with what is wrong and how it is right.
#[test]
fn a_wrong_file_says_what_is_wrong() {
    for (file, words) in [
        ("", "missing field `path`"),
        ("path = '/a'\nbody = '{TEXT}'\nmore = 1", "unknown field `more`"),
        ("path = 'a'\nbody = '{TEXT}'", "a path begins with `/`"),
        ("path = '/a'\nbody = '{TEXT}'\nmethod = 'P T'", "no method of HTTP"),
        ("path = '/a'\nbody = '{TEXT}'\n[cancel]\npath = '/{ID}'", "say where, as `id.header` or `id.field`"),
        ("path = '/a/{ID}'\nbody = '{TEXT}'\nid = { field = 'id' }", "`{ID}` is known from the first answer"),
        ("path = '/a'\nbody = '{TEXT}'\n[next]\npath = '/b'", "`next.body` holds no `{TEXT}`"),
        ("path = '/a'\nbody = '{TEXT}'\n[cancel]\npath = '/b'\nsays = 'gone'", "unknown variant `gone`"),
    ] {
        let wrong = RequestFile::parse(file).unwrap_err();
        assert!(wrong.contains(words), "{file}: {wrong}");
    }
}

/// S15.10: the next message is asked as the file says; one that says of no conversation asks none.
#[test]
fn the_next_message_is_of_the_same_conversation_or_none() {
    let by = Filling { text: "hello", conversation: "c-1", id: Some("r-1") };
    let next = |file: &str| RequestFile::parse(file).unwrap().next(by);
    let filled = |path: &str, body: &str| {
        Ok(Filled { method: Method::POST, path: path.to_owned(), body: body.to_owned() })
    };
    let again = "path = '/{CONVERSATION}'\nbody = '{TEXT}'";
    assert_eq!(next(again), filled("/c-1", "hello"));
    let another = "path = '/a'\nbody = '{TEXT}'\nid.field = 'id'\n[next]\npath = '/{ID}'\nbody = '[{TEXT}]'";
    assert_eq!(next(another), filled("/r-1", "[hello]"));
    let none = next("path = '/a'\nbody = '{TEXT}'").unwrap_err();
    assert!(none.contains("does not say how a conversation is continued"), "{none}");
}

/// S15.10: the golden file: each part of it is read like this.
#[test]
fn a_request_file_is_read_like_this() {
    let file = "path = '/a'\nbody = '{TEXT}'\nheaders = { x-a = 'b' }\nid.header = 'x-id'\n\
                [cancel]\nmethod = 'DELETE'\npath = '/{ID}'\nsays = 'stopped'\n[next]\npath = '/{ID}'\nbody = '{TEXT}'";
    let text = ToOwned::to_owned;
    let cancel = CancelRoute {
        method: text("DELETE"),
        path: text("/{ID}"),
        body: String::new(),
        says: CancelAnswer::Stopped,
    };
    let next = NextRequest { method: text("POST"), path: text("/{ID}"), body: text("{TEXT}") };
    let read = RequestFile {
        method: text("POST"),
        path: text("/a"),
        body: text("{TEXT}"),
        headers: BTreeMap::from([(text("x-a"), text("b"))]),
        id: Some(IdPlace::Header(text("x-id"))),
        cancel: Some(cancel),
        next: Some(next),
    };
    assert_eq!(RequestFile::parse(file), Ok(read));
}
