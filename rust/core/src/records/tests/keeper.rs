//! Random histories: what is read is what the model held at the accepted and at the published revision, or it is cold and
//! can be loaded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use remora_wire as wire;

use super::database;
use super::model::{self, Edit, Event, History, Id, Row, Spot, State};
use crate::records::partition::Partition;
use crate::records::*;

/// So little that everything that may go goes.
const BOUND: usize = 1;

#[derive(Clone, Debug)]
enum Step {
    Write(usize, Vec<Edit>),
    Publish(u64),
    /// The database gets ahead of what is marked.
    Store(u64),
    Mark,
    /// Everything that may leave memory does.
    Cool,
    /// The process starts anew, when all is stored.
    Restart,
    Ask(usize, Spot, Question),
    Answer(Index),
    /// What is asked for changes before the answer, and may have left memory by then.
    Race(Race),
    List(usize, Spot, Listed),
    Refresh(Index, Option<i64>),
    /// What was refreshed is journaled.
    Journal,
}

#[derive(Clone, Debug)]
struct Race {
    tenant: usize,
    spot: Spot,
    question: Question,
    edits: Vec<Edit>,
    /// How many of: it is published, stored and marked.
    reaches: usize,
    /// Whether all of it was in memory when it was asked for, and whether it leaves memory.
    is_whole: bool,
    cools: bool,
}

#[derive(Clone, Debug)]
enum Question {
    Key {
        with_body: bool,
    },
    Whole {
        with_bodies: bool,
    },
    /// From a record of the database on, up to what is in memory or to the end.
    Range {
        order: usize,
        from: Index,
        joins: bool,
    },
}

#[derive(Clone, Debug)]
struct Listed {
    order: usize,
    newest: bool,
    after: Option<Index>,
    before: Option<Index>,
    number: Option<i64>,
    last: Option<usize>,
    skip: usize,
    limit: usize,
    now: i64,
}

fn questions() -> impl Strategy<Value = Question> {
    prop_oneof![
        3 => any::<bool>().prop_map(|with_body| Question::Key { with_body }),
        1 => any::<bool>().prop_map(|with_bodies| Question::Whole { with_bodies }),
        2 => (0..3_usize, any::<Index>(), any::<bool>())
            .prop_map(|(order, from, joins)| Question::Range { order, from, joins }),
    ]
}

fn races() -> impl Strategy<Value = Race> {
    let edits = |spot: &Spot| prop::collection::vec(model::edits_of(spot.clone()), 0..3);
    let spots = model::spots().prop_flat_map(move |spot| (edits(&spot), Just(spot)));
    let states = (0..4_usize, any::<bool>(), any::<bool>());
    (0..2_usize, spots, questions(), states).prop_map(
        |(tenant, (edits, spot), question, (reaches, is_whole, cools))| Race {
            tenant,
            spot,
            question,
            edits,
            reaches,
            is_whole,
            cools,
        },
    )
}

fn lists() -> impl Strategy<Value = Listed> {
    let bounds = prop::option::of(any::<Index>());
    (
        (0..3_usize, any::<bool>(), bounds.clone(), bounds),
        prop::option::of(0..3_i64),
        prop::option::weighted(0.3, 0..5_usize),
        prop_oneof![2 => Just(0), 1 => 0..3_usize],
        0..5_usize,
        0..4_i64,
    )
        .prop_map(
            |((order, newest, after, before), number, last, skip, limit, now)| Listed {
                order,
                newest: newest && last.is_none(),
                after,
                before,
                number,
                last,
                skip,
                limit,
                now,
            },
        )
}

fn steps() -> impl Strategy<Value = Step> {
    let tenants = || model::first_of(model::TENANTS.len());
    prop_oneof![
        12 => (tenants(), prop::collection::vec(model::edits(), 1..6))
            .prop_map(|(tenant, edits)| Step::Write(tenant, edits)),
        5 => (0..4_u64).prop_map(Step::Publish),
        3 => (0..4_u64).prop_map(Step::Store),
        3 => Just(Step::Mark),
        2 => Just(Step::Cool),
        1 => Just(Step::Restart),
        6 => (tenants(), model::spots(), questions())
            .prop_map(|(tenant, spot, question)| Step::Ask(tenant, spot, question)),
        6 => any::<Index>().prop_map(Step::Answer),
        6 => races().prop_map(Step::Race),
        6 => (tenants(), model::spots(), lists())
            .prop_map(|(tenant, spot, list)| Step::List(tenant, spot, list)),
        3 => (any::<Index>(), model::expire_times())
            .prop_map(|(pick, expire_time)| Step::Refresh(pick, expire_time)),
        1 => Just(Step::Journal),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn reads_show_what_was_accepted_and_what_is_published(
        steps in prop::collection::vec(steps(), 1..60),
    ) {
        let mut harness = Harness::new();
        for step in &steps {
            harness.run(step);
            harness.check();
        }
        harness.empty();
    }
}

/// A load on its way.
struct Asked {
    place: Id,
    records: Vec<(Id, Row, bool)>,
    absent: Option<Vec<u8>>,
    extent: Extent,
    as_of: u64,
}

struct Harness {
    records: Records,
    history: History,
    published: u64,
    stored: u64,
    marked: u64,
    asked: Vec<Asked>,
    /// Expire times as memory has them, by where a record is and its revision.
    expiries: BTreeMap<(Id, u64), Option<i64>>,
    /// Those that the journal lacks.
    refreshed: BTreeMap<(Id, u64), Option<i64>>,
}

impl Harness {
    fn new() -> Self {
        Self {
            records: Records::new(model::kinds(), BOUND, 0),
            history: History::new(),
            published: 0,
            stored: 0,
            marked: 0,
            asked: Vec::new(),
            expiries: BTreeMap::new(),
            refreshed: BTreeMap::new(),
        }
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Write(tenant, edits) => {
                let (revision, record) = self.history.write(*tenant, edits);
                self.accept(revision, record);
            }
            Step::Publish(count) => {
                self.published = self
                    .published
                    .saturating_add(*count)
                    .min(self.history.accepted());
            }
            Step::Store(count) => {
                self.stored = self.stored.saturating_add(*count).min(self.published)
            }
            Step::Mark => self.mark(),
            Step::Cool => self.cool(),
            Step::Restart => self.restart(),
            Step::Ask(tenant, spot, question) => {
                let place = self.history.id(*tenant, spot);
                let asked = self.ask(place, question);
                self.asked.push(asked);
            }
            Step::Answer(pick) => {
                if !self.asked.is_empty() {
                    let asked = self.asked.remove(pick.index(self.asked.len()));
                    self.answer(asked);
                }
            }
            Step::Race(race) => self.race(race),
            Step::List(tenant, spot, list) => self.list(*tenant, spot, list),
            Step::Refresh(pick, expire_time) => self.refresh(pick, *expire_time),
            Step::Journal => self.journal(),
        }
    }

    fn accept(&mut self, revision: u64, record: Bytes) {
        let record = wire::Record::read(record).unwrap();
        for (ordinal, change) in record.changes.iter().enumerate() {
            let change = Change::read(change.kind.as_ref().unwrap(), self.records.kinds());
            if let Some(change) = change.unwrap() {
                let change = Prepared::new(change, ordinal);
                self.records
                    .apply(&record.tenant_id, change, revision, self.published);
            }
        }
        for event in self.history.events.drain(..) {
            match event {
                Event::Ended(id, ended) => {
                    let place = (id, ended);
                    self.refreshed.remove(&place);
                    if ended == revision {
                        self.expiries.remove(&place);
                    }
                }
                Event::Expired(id, record_revision, expire_time) => {
                    let place = (id, record_revision);
                    let refreshed = self.refreshed.get(&place);
                    if refreshed.is_none_or(|refreshed| *refreshed == expire_time) {
                        self.refreshed.remove(&place);
                        self.expiries.insert(place, expire_time);
                    }
                }
            }
        }
    }

    fn mark(&mut self) {
        self.marked = self.stored;
        self.records.mark_applied(self.marked, self.published);
    }

    fn cool(&mut self) {
        self.records.clock.fetch_add(1_000, Ordering::Relaxed);
        self.records.evict();
    }

    fn restart(&mut self) {
        if !self.refreshed.is_empty() {
            return;
        }
        self.published = self.history.accepted();
        self.stored = self.published;
        self.marked = self.stored;
        self.asked.clear();
        self.records = Records::new(model::kinds(), BOUND, self.marked);
        self.expiries.clear();
        self.history.touched.clear();
    }

    /// A record of a state as readers of memory see it.
    fn seen(&self, state: &State, id: &Id) -> Option<Row> {
        let row = state.get(id)?;
        let place = (id.clone(), row.revision);
        let expire_time = self.expiries.get(&place).copied();
        Some(Row {
            expire_time: expire_time.unwrap_or(row.expire_time),
            ..row.clone()
        })
    }

    /// A state as readers of memory see it.
    fn view(&self, revision: u64) -> State {
        let state = self.history.at(revision);
        let seen = state.keys();
        seen.map(|id| (id.clone(), self.seen(state, id).unwrap()))
            .collect()
    }

    fn with_place<T>(&self, id: &Id, work: impl FnOnce(&Records, Place<'_>) -> T) -> T {
        let kind: &Arc<Kind> = self.records.kinds().get(id.kind).unwrap();
        let place = Place {
            kind,
            tenant: &id.tenant,
            conversation_uid: id.uid,
            partition: &id.partition,
        };
        work(&self.records, place)
    }

    fn orders(&self, id: &Id) -> Vec<Vec<usize>> {
        self.records.kinds().get(id.kind).unwrap().orders.clone()
    }

    fn ask(&self, place: Id, question: &Question) -> Asked {
        let database = self.history.at(self.stored);
        let orders = self.orders(&place);
        let (records, absent, extent) = match question {
            Question::Key { with_body } => {
                let row = database.get(&place);
                let found = row.map(|row| (place.clone(), row.clone(), *with_body));
                let absent = row.is_none().then(|| place.key.clone());
                (found.into_iter().collect(), absent, Extent::Keys)
            }
            Question::Whole { with_bodies } => {
                let rows = database::in_order(database, &place, 0, &orders);
                let rows = rows.into_iter();
                let rows = rows.map(|(_, id, row)| (id.clone(), row.clone(), *with_bodies));
                (rows.collect(), None, Extent::Whole)
            }
            Question::Range { order, from, joins } => {
                let order = order % (orders.len() + 1);
                let rows = database::in_order(database, &place, order, &orders);
                let first = from.index(rows.len() + 1);
                let from = rows.get(first).map(|(position, ..)| position.clone());
                let to = match joins {
                    true => self.cold_after(&place, order),
                    false => None,
                };
                let rows = rows[first..].iter();
                let rows = rows.filter(|(position, ..)| to.as_ref().is_none_or(|to| position < to));
                let rows = rows.map(|(_, id, row)| ((*id).clone(), (*row).clone(), true));
                let rows = rows.collect();
                match from {
                    Some(from) => (rows, None, Extent::Range { order, from, to }),
                    None => (rows, None, Extent::Keys),
                }
            }
        };
        Asked {
            place,
            records,
            absent,
            extent,
            as_of: self.marked,
        }
    }

    /// From where on an order is in memory.
    fn cold_after(&self, place: &Id, order: usize) -> Option<Position> {
        let selection = Selection {
            order,
            newest: true,
            limit: usize::MAX,
            max_bytes: usize::MAX,
            ..Selection::default()
        };
        let listed = self.with_place(place, |records, place| {
            records.list(&place, &selection, || self.published)
        });
        listed.err().and_then(|cold| cold.after)
    }

    fn answer(&self, asked: Asked) {
        let rows = asked.records.iter();
        let loaded = Loaded {
            records: rows
                .map(|(id, row, with_body)| database::loaded(id, row, *with_body))
                .collect(),
            absent: asked
                .absent
                .iter()
                .map(|key| key.as_slice().into())
                .collect(),
            extent: asked.extent,
            as_of: asked.as_of,
        };
        let is_fresh = self.with_place(&asked.place, |records, place| records.load(&place, loaded));
        assert!(is_fresh || asked.as_of < self.marked);
    }

    fn race(&mut self, race: &Race) {
        let place = self.history.id(race.tenant, &race.spot);
        if race.is_whole {
            self.answer(self.ask(place.clone(), &Question::Whole { with_bodies: false }));
        }
        let asked = self.ask(place, &race.question);
        self.run(&Step::Write(race.tenant, race.edits.clone()));
        let then = [Step::Publish(u64::MAX), Step::Store(u64::MAX), Step::Mark];
        for step in then.iter().take(race.reaches) {
            self.run(step);
        }
        if race.cools {
            self.cool();
        }
        self.answer(asked);
    }

    fn list(&mut self, tenant: usize, spot: &Spot, list: &Listed) {
        let place = self.history.id(tenant, spot);
        let orders = self.orders(&place);
        let order = list.order % (orders.len() + 1);
        let view = self.view(self.published);
        let rows = database::in_order(&view, &place, order, &orders);
        let bound = |pick: &Option<Index>| {
            let pick = pick.filter(|_| !rows.is_empty())?;
            Some(rows[pick.index(rows.len())].0.clone())
        };
        let selection = Selection {
            order,
            newest: list.newest,
            after: bound(&list.after),
            before: bound(&list.before),
            filters: filters(&place, list),
            last: list.last,
            skip: list.skip,
            limit: list.limit,
            max_bytes: usize::MAX,
            now: list.now,
        };
        let (expected, more) = expected_page(&rows, &selection);
        let count = rows
            .iter()
            .filter(|(.., row)| passes(row, &selection))
            .count();
        self.check_list(&place, &selection, &expected, more, count, false);
        self.answer(self.ask(place.clone(), &Question::Whole { with_bodies: true }));
        self.check_list(&place, &selection, &expected, more, count, true);
    }

    fn check_list(
        &self,
        place: &Id,
        selection: &Selection,
        expected: &[(&Id, &Row)],
        more: bool,
        count: usize,
        is_loaded: bool,
    ) {
        let page = self.with_place(place, |records, place| {
            records.list(&place, selection, || self.published)
        });
        assert!(page.is_ok() || !is_loaded, "{page:?}");
        if let Ok(page) = page {
            assert_eq!(page.revision, self.published);
            assert_eq!(page.records.len(), expected.len());
            for (found, (id, row)) in page.records.iter().zip(expected) {
                assert_eq!(found.key.as_ref(), id.key);
                self.check_found(found, row);
            }
            assert_eq!(page.more, more);
        }
        let counted = self.with_place(place, |records, place| {
            records.count_records(&place, &selection.filters, selection.now, || self.published)
        });
        assert!(counted.is_ok() || !is_loaded);
        if let Ok(counted) = counted {
            assert_eq!(counted, (count, self.published));
        }
    }

    fn check_found(&self, found: &Found, row: &Row) {
        assert_eq!(database::row_of(found, row), *row);
        assert!(found.held.body.is_some() || row.revision <= self.stored);
    }

    /// Every record is what the model has, or cold, which what the database lacks never is.
    fn check(&self) {
        self.check_expiries();
        let accepted = self.history.accepted();
        for id in self.history.ids() {
            let found = self.with_place(&id, |records, place| {
                let published = records.get(&place, &id.key, i64::MIN, || self.published);
                let published = published.map(|(found, revision)| {
                    assert_eq!(revision, self.published);
                    found
                });
                [published, records.accepted(&place, &id.key)]
            });
            let revisions = [self.published, accepted];
            for (found, revision) in found.into_iter().zip(revisions) {
                let expected = self.seen(self.history.at(revision), &id);
                match (found, expected) {
                    (Ok(Some(found)), Some(row)) => self.check_found(&found, &row),
                    (Ok(found), expected) => {
                        assert!(found.is_none() && expected.is_none(), "{id:?} {expected:?}");
                    }
                    (Err(_), expected) if revision == accepted => {
                        let is_unapplied = |row: Row| row.revision > self.marked;
                        assert!(!expected.is_some_and(is_unapplied), "{id:?}");
                    }
                    (Err(_), _) => {}
                }
            }
        }
        for shard in &self.records.shards {
            shard.lock().residents.values().for_each(Partition::check);
        }
        for kind in self.records.kinds().iter() {
            let touched = self.history.touched.get(&kind.number);
            assert_eq!(self.records.touched(kind), touched.copied().unwrap_or(0));
        }
    }

    fn refresh(&mut self, pick: &Index, expire_time: Option<i64>) {
        let newest = self.history.at(self.history.accepted());
        if newest.is_empty() {
            return;
        }
        let rows: Vec<_> = newest.iter().collect();
        let (id, row) = *pick.get(&rows);
        let (id, revision) = (id.clone(), row.revision);
        let is_refreshed = self.with_place(&id, |records, place| {
            records.refresh(&place, &id.key, revision, expire_time, 0)
        });
        if is_refreshed {
            self.expiries.insert((id.clone(), revision), expire_time);
            self.refreshed.insert((id, revision), expire_time);
        }
        self.check_refreshed();
    }

    /// What the database shows, with the expire times that it may lack, expires when memory says so.
    fn check_expiries(&self) {
        let published = self.view(self.published);
        let unapplied = self.records.kinds().iter().flat_map(|kind| {
            let tenants = model::TENANTS.iter();
            tenants.flat_map(|tenant| self.records.unapplied_expiries(kind, tenant))
        });
        let unapplied: BTreeMap<_, _> = unapplied.map(placed).collect();
        for (id, row) in self.history.at(self.stored) {
            let place = (id.clone(), row.revision);
            if let Some(seen) = published
                .get(id)
                .filter(|seen| seen.revision == row.revision)
            {
                let expire_time = unapplied.get(&place).copied();
                assert_eq!(expire_time.unwrap_or(row.expire_time), seen.expire_time);
            }
        }
    }

    fn check_refreshed(&self) {
        let taken = self.records.take_refreshed(0, 0);
        let taken = taken.into_iter().map(placed);
        assert_eq!(taken.collect::<BTreeMap<_, _>>(), self.refreshed);
    }

    /// Writes what was refreshed to the journal.
    fn journal(&mut self) {
        for ((id, revision), expire_time) in self.refreshed.clone() {
            let tenant = model::TENANTS.iter().position(|name| *name == id.tenant);
            let (revision, record) =
                self.history
                    .write_expiry(tenant.unwrap(), &id, revision, expire_time);
            self.accept(revision, record);
        }
        assert!(self.refreshed.is_empty());
        self.check_refreshed();
    }

    /// When the database has everything, nothing need stay in memory.
    fn empty(&mut self) {
        self.journal();
        self.published = self.history.accepted();
        self.stored = self.published;
        self.mark();
        self.cool();
        assert_eq!(self.records.partitions(), 0);
        assert_eq!(self.records.bytes(), 0);
        self.check();
    }
}

/// The expire time of a record, by where it is and its revision.
fn placed(record: RefreshedRecord) -> ((Id, u64), Option<i64>) {
    let id = Id {
        kind: record.kind.number,
        tenant: record.tenant.to_string(),
        uid: record.conversation_uid,
        partition: record.partition.to_vec(),
        key: record.key.to_vec(),
    };
    ((id, record.revision), record.expire_time)
}

fn filters(place: &Id, list: &Listed) -> Filters {
    let number = list.number.filter(|_| place.kind == model::TURNS);
    number
        .map(|number| (1, Value::Integer(number)))
        .into_iter()
        .collect()
}

fn passes(row: &Row, selection: &Selection) -> bool {
    let mut filters = selection.filters.iter();
    row.expire_time.is_none_or(|time| time > selection.now)
        && filters.all(|(column, value)| row.columns[*column] == *value)
}

/// The page of a selection, and whether more follow.
fn expected_page<'a>(
    rows: &[(Position, &'a Id, &'a Row)],
    selection: &Selection,
) -> (Vec<(&'a Id, &'a Row)>, bool) {
    let passing = rows.iter().filter(|(position, _, row)| {
        passes(row, selection)
            && selection
                .after
                .as_ref()
                .is_none_or(|after| position > after)
            && selection
                .before
                .as_ref()
                .is_none_or(|before| position < before)
    });
    let mut passing: Vec<_> = passing.map(|(_, id, row)| (*id, *row)).collect();
    if let Some(last) = selection.last {
        passing.drain(..passing.len().saturating_sub(last));
    }
    if selection.newest {
        passing.reverse();
    }
    let rest: Vec<_> = passing.into_iter().skip(selection.skip).collect();
    let more = rest.len() > selection.limit;
    let mut page: Vec<_> = rest.into_iter().take(selection.limit).collect();
    if selection.newest {
        page.reverse();
    }
    (page, more)
}
