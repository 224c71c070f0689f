//! Request ids against a list of all commits.

use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use remora_fingerprint::Fingerprints;

use crate::core::requests::{Claim, Known, Request, Requests};

const HOUR: i64 = 3_600_000_000;
const BOUND: usize = 5;

fn fingerprint(payload: u8) -> [u8; 16] {
    [payload; 16]
}

/// (id, payload, minutes since the attempt before).
fn attempts() -> impl Strategy<Value = Vec<(u8, u8, i64)>> {
    prop::collection::vec((0..8_u8, 0..2_u8, 0..25_i64), 1..60)
}

/// What a list of all commits (id, payload, time) answers, the revision being the place in it.
fn expected(commits: &[(u8, u8, i64)], id: u8, payload: u8, now: i64) -> Option<Known> {
    let oldest = commits.len().saturating_sub(BOUND);
    let kept = commits.iter().enumerate().skip(oldest);
    let mut found = kept.filter(|(_, commit)| commit.0 == id && now - commit.2 <= HOUR);
    found.next_back().map(|(revision, commit)| Known {
        revision: revision as u64,
        is_same: commit.1 == payload,
    })
}

proptest! {
    #[test]
    fn requests_are_known_for_an_hour_and_up_to_the_bound(attempts in attempts()) {
        let names = Fingerprints::default();
        let requests = Requests::new(BOUND);
        let (mut commits, mut now) = (Vec::new(), 0);
        for (id, payload, minutes) in attempts {
            now += minutes * 60_000_000;
            let key = names.of(["acme", &id.to_string()]);
            let request = Request { key, fingerprint: fingerprint(payload), time: now };
            let known = match requests.claim(&request, None) {
                Claim::Known(known) => Some(known),
                Claim::TimedOut => panic!("nobody else claims"),
                Claim::Reserved(_reservation) => {
                    requests.remember(&request, commits.len() as u64);
                    None
                }
            };
            prop_assert_eq!(known, expected(&commits, id, payload, now));
            if known.is_none() {
                commits.push((id, payload, now));
            }
            prop_assert_eq!(requests.find(key, fingerprint(payload)), expected(&commits, id, payload, now));
        }
    }
}

fn request() -> Request {
    Request {
        key: Fingerprints::default().of(["acme", "request"]),
        fingerprint: fingerprint(1),
        time: 0,
    }
}

#[test]
fn a_request_that_failed_can_be_claimed_again() {
    let (requests, request) = (Requests::new(BOUND), request());
    drop(requests.claim(&request, None));
    assert!(matches!(requests.claim(&request, None), Claim::Reserved(_)));
}

#[test]
fn a_claim_times_out_while_another_attempt_is_under_way() {
    let (requests, request) = (Requests::new(BOUND), request());
    let _first = requests.claim(&request, None);
    let deadline = Instant::now() + Duration::from_millis(1);
    assert!(matches!(
        requests.claim(&request, Some(deadline)),
        Claim::TimedOut
    ));
}

#[test]
fn a_claim_waits_for_the_outcome_of_another_attempt() {
    let (requests, request) = (Requests::new(BOUND), request());
    let first = requests.claim(&request, None);
    thread::scope(|scope| {
        let second = scope.spawn(|| match requests.claim(&request, None) {
            Claim::Known(known) => Some(known),
            _ => None,
        });
        requests.remember(&request, 7);
        drop(first);
        let known = Known {
            revision: 7,
            is_same: true,
        };
        assert_eq!(second.join().unwrap(), Some(known));
    });
}
