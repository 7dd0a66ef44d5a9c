//! A session recovered from a checkpoint and the records after it, beside the fold of every record.

use std::sync::LazyLock;

use jiff::Timestamp;
use proptest::{prelude::*, sample::select};

use super::*;
use crate::{
    contract::store::{
        Appended, Changes, Durability, Lease, MemoryStore, NewSession, OwnerProcess, Record, Rest, Store,
    },
    session::{journal::line::Grown, node::Member},
    value::{history::Message, ids::SessionId},
};

/// Every fact of the golden file.
static FACTS: LazyLock<Vec<Arc<Fact>>> = LazyLock::new(|| {
    let golden = include_str!("../../../../tests/golden/facts.txt").split("\n# ").next().unwrap_or_default();
    golden.lines().skip(1).map(|line| Arc::new(serde_json::from_str(line).unwrap())).collect()
});

/// One turn: how much of the conversation it keeps, what was recorded of its run and of a child run, and how it ended.
#[derive(Clone, Debug)]
struct TurnRecords {
    keeps: usize,
    root: Vec<usize>,
    child: Vec<usize>,
    end: u8,
}

fn drawn() -> impl Strategy<Value = TurnRecords> {
    let some = |most| prop::collection::vec(any::<prop::sample::Index>(), 0..most);
    let numbers = |all: Vec<prop::sample::Index>| all.iter().map(|one| one.index(FACTS.len())).collect();
    (0..40_usize, some(12), some(12), select(vec![0_u8, 0, 0, 1, 2, 3, 4, 5])).prop_map(
        move |(keeps, root, child, end)| TurnRecords {
            keeps,
            root: numbers(root),
            child: numbers(child),
            end,
        },
    )
}

/// The turn's records. A history is not in them but as what it adds.
fn lines(number: u64, drawn: &TurnRecords, facts: &[Arc<Fact>]) -> Vec<JournalLine> {
    let turn = TurnId::new(number);
    let at = |index: &usize| Arc::clone(&facts[*index]);
    let opens = |fact: &Arc<Fact>| matches!(&**fact, Fact::AttemptOpened { .. });
    let mut lines = vec![JournalLine::planned(turn, vec![number])];
    let opened = facts.iter().rfind(|fact| opens(fact)).unwrap();
    let entries = vec![Arc::new(Message::User(format!("question {number}").into()))];
    let grown = Grown { base: drawn.keeps, entries, view: History::new().view().clone() };
    if drawn.end != 5 {
        lines.push(JournalLine::fact(turn, Path::default(), Arc::clone(opened), Some(grown)));
    }
    let mut recorded = drawn.root.iter().map(at).filter(|fact| !opens(fact));
    lines.extend(recorded.by_ref().map(|fact| JournalLine::fact(turn, Path::default(), fact, None)));
    let path = Path::default().of(&"call_1".into());
    lines.extend(drawn.child.iter().map(at).map(|fact| JournalLine::fact(turn, path.clone(), fact, None)));
    lines.extend(match drawn.end {
        0 => Some(JournalLine::ended(turn, ItemOutcome::Completed(turn), None)),
        1 => Some(JournalLine::ended(turn, ItemOutcome::Interrupted(turn), None)),
        2 => Some(JournalLine::forgotten(turn)),
        3 => Some(JournalLine::given_up(turn)),
        _ => None,
    });
    lines.push(JournalLine::Quiet { turn, at: Timestamp::UNIX_EPOCH, survivors: Vec::new() });
    lines
}

async fn journal(store: &Arc<dyn Store>) -> (Arc<Journal>, Lease) {
    let id = SessionId::from("s");
    if store.open(&id).await.is_err() {
        store.create(NewSession::of(id.clone())).await.unwrap();
    }
    let node = Member::alone(Arc::clone(store), OwnerProcess::here()).await.unwrap();
    let lease = store.acquire(&id, node.lease()).await.unwrap();
    let row = store.open(&id).await.unwrap();
    (Arc::new(Journal::new(node, &row, lease.clone(), None)), lease)
}

async fn append(store: &Arc<dyn Store>, lease: &Lease, writes: Vec<Write>) -> Appended {
    store.append(lease, writes, Durability::Recorded).await.unwrap()
}

async fn append_turns(store: &Arc<dyn Store>, lease: &Lease, first: u64, turns: &[TurnRecords]) {
    for (number, drawn) in (first..).zip(turns) {
        let writes = lines(number, drawn, &FACTS).iter().map(|line| line.write().unwrap()).collect();
        append(store, lease, writes).await;
    }
}

/// All that a recovery says.
async fn said(fold: Fold, journal: &Arc<Journal>) -> String {
    let found = fold.recovered(journal);
    let mut background = Vec::from_iter(&found.background);
    background.sort_unstable();
    let left = match &found.left {
        None => None,
        Some(left) => {
            let log = left.log.read().await.unwrap();
            Some((left.turn, left.fate, &left.run, &left.before, &left.open, left.left_open, log))
        }
    };
    let always = found.always.state();
    format!("{:#?}", (&found.history, found.turns, left, always, &found.put_back, background, &found.lost))
}

fn in_a_runtime(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// A session of these turns, a checkpoint of them, and then these.
async fn kept(before: &[TurnRecords], after: &[TurnRecords]) -> (Arc<dyn Store>, Arc<Journal>, Lease) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (_, lease) = journal(&store).await;
    append_turns(&store, &lease, 1, before).await;
    store.release(&lease, Changes::default(), Rest::Nothing).await.unwrap();
    let (opened, lease) = journal(&store).await;
    let checkpoint = recover(&opened).await.unwrap().checkpoint.expect("a checkpoint is due");
    append(&store, &lease, vec![checkpoint]).await;
    append_turns(&store, &lease, 1 + before.len() as u64, after).await;
    (store, opened, lease)
}

fn plain() -> TurnRecords {
    TurnRecords { keeps: 40, root: vec![4, 5], child: vec![], end: 0 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// S7.17, S7.1: what a checkpoint and the records after it say is what all records say, whatever they are; and so is what a
    /// checkpoint says that continues another one.
    #[test]
    fn a_checkpoint_says_what_the_records_say(
        some in prop::collection::vec(drawn(), 10..30),
        more in prop::collection::vec(drawn(), 0..60),
        last in prop::collection::vec(drawn(), 0..4),
    ) {
        in_a_runtime(async {
            let mut before = vec![plain(); 110];
            before.extend(some);
            let (store, opened, lease) = kept(&before, &more).await;
            let folded = fold(&opened).await.unwrap();
            assert!(folded.before.is_some(), "the checkpoint is not used");
            let all = Fold::of_all(&opened).read_on(&opened).await.unwrap();
            let continued = fold(&opened).await.unwrap().recovered(&opened).checkpoint;
            assert_eq!(said(folded, &opened).await, said(all, &opened).await);
            if let Some(continued) = continued {
                append(&store, &lease, vec![continued]).await;
            }
            append_turns(&store, &lease, 1 + (before.len() + more.len()) as u64, &last).await;
            let folded = fold(&opened).await.unwrap();
            let all = Fold::of_all(&opened).read_on(&opened).await.unwrap();
            assert_eq!(said(folded, &opened).await, said(all, &opened).await);
        });
    }
}

/// S7.17: a checkpoint of other records, of another version, malformed, or one whose earlier one is not there, is passed over:
/// every record is read, and nothing fails.
#[tokio::test]
async fn a_checkpoint_that_does_not_fit_is_not_believed() {
    type Forge = fn(&mut serde_json::Value);
    let forged: [Forge; 7] = [
        |it| it["chain"][0] = (it["chain"][0].as_u64().unwrap() ^ 1).into(),
        |it| it["chain"] = serde_json::json!([1, 2]),
        |it| it["at"] = (it["at"].as_u64().unwrap() - 1).into(),
        |it| it["at"] = u64::MAX.into(),
        |it| it["history"]["base"] = 1.into(),
        |it| it["after"] = serde_json::json!({"position": 0, "mark": "00"}),
        |it| *it = "no checkpoint".into(),
    ];
    let believed = async |forge: &dyn Fn(&mut Record)| {
        let (store, _, lease) = kept(&vec![plain(); 140], &[plain()]).await;
        let head = store.open(&"s".into()).await.unwrap().head;
        let entries = store.read(&"s".into(), 0, 2048).await.unwrap().entries;
        let mut records = entries.into_iter().filter_map(|entry| entry.record.ok());
        let mut record = records.rfind(Record::is_checkpoint).expect("there is one");
        forge(&mut record);
        append(&store, &lease, vec![Write::Record(record)]).await;
        append_turns(&store, &lease, 142, &[plain()]).await;
        store.release(&lease, Changes::default(), Rest::Nothing).await.unwrap();
        let (opened, _) = journal(&store).await;
        assert!(opened.head() > head);
        let folded = fold(&opened).await.unwrap();
        let all = Fold::of_all(&opened).read_on(&opened).await.unwrap();
        let is_believed = folded.before.is_some();
        assert_eq!(said(folded, &opened).await, said(all, &opened).await);
        is_believed
    };
    assert!(believed(&|_| {}).await, "the same once more fits");
    for (number, forge) in forged.into_iter().enumerate() {
        let forge = |record: &mut Record| {
            let mut value = serde_json::from_slice(&record.bytes).unwrap();
            forge(&mut value);
            record.bytes = serde_json::to_vec(&value).unwrap();
        };
        assert!(!believed(&forge).await, "forgery {number} is believed");
    }
    assert!(!believed(&|record| record.version += 1).await, "a later release's is believed");
    assert!(!believed(&|record| record.bytes.truncate(9)).await, "half of one is believed");
}

/// S7.17: a short session gets no checkpoint, and one that has a fresh one gets no other.
#[tokio::test]
async fn a_checkpoint_is_made_where_it_is_worth_it() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (_, lease) = journal(&store).await;
    append_turns(&store, &lease, 1, &vec![plain(); 50]).await;
    store.release(&lease, Changes::default(), Rest::Nothing).await.unwrap();
    let (opened, _) = journal(&store).await;
    assert!(opened.head() < EVERY && recover(&opened).await.unwrap().checkpoint.is_none());
    let (_, opened, _) = kept(&vec![plain(); 140], &vec![plain(); 60]).await;
    assert!(recover(&opened).await.unwrap().checkpoint.is_none());
    let (_, opened, _) = kept(&vec![plain(); 140], &vec![plain(); 140]).await;
    let Some(Write::Record(continued)) = recover(&opened).await.unwrap().checkpoint else { panic!("due") };
    let text = String::from_utf8(continued.bytes).unwrap();
    assert!(text.contains("\"after\"") && !text.contains("question 100\""), "an entry is written twice");
}
