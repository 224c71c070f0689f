//! Replies that are held until their revision is published.

use super::*;

/// A deadline that does not pass, as gRPC says it: PATIENCE.
const FAR: &str = "300S";

async fn later(requests: SendRequest<Bytes>, timeout: &str) -> Option<u8> {
    let request = with(LATER, &[("grpc-timeout", timeout)]);
    let client = Client { requests };
    client.send(request, framed(b"")).await.code
}

/// Runs `then` when so many calls have been answered and are held.
fn held(running: &Running, count: usize, then: impl FnOnce(&Stage)) -> Vec<Option<u8>> {
    let (runtime, client) = running.client();
    runtime.block_on(async {
        let calls: Vec<_> = (0..count)
            .map(|_| tokio::spawn(later(client.requests.clone(), FAR)))
            .collect();
        let stage = Arc::clone(&running.stage);
        tokio::task::spawn_blocking(move || {
            eventually(|| stage.answered.load(Ordering::SeqCst) == count);
        })
        .await
        .unwrap();
        assert!(calls.iter().all(|call| !call.is_finished()));
        then(&running.stage);
        let mut codes = Vec::new();
        for call in calls {
            codes.push(call.await.unwrap());
        }
        codes
    })
}

#[test]
fn replies_are_sent_when_their_revision_is_published() {
    let running = Running::new(Options::default());

    let codes = held(&running, 20, |stage| {
        stage.publish(REVISION - 1);
        stage.publish(REVISION);
    });

    assert_eq!(codes, [Some(0); 20]);
}

#[test]
fn a_reply_of_a_published_revision_is_not_held() {
    let running = Running::new(Options::default());
    running.stage.publish(REVISION);
    let (runtime, client) = running.client();

    assert_eq!(runtime.block_on(client.call(LATER, b"")).code, Some(0));
}

#[test]
fn calls_whose_revision_will_not_be_published_fail() {
    let running = Running::new(Options::default());

    let codes = held(&running, 3, Stage::end);

    assert_eq!(codes, [Some(15); 3]);
    let (runtime, client) = running.client();
    assert_eq!(runtime.block_on(client.call(LATER, b"")).code, Some(15));
}

#[test]
fn a_deadline_ends_a_call_that_is_held() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();

    let mut millis = 20;
    // On a busy machine it may pass before the call is answered.
    while running.answered() == 0 {
        let code = runtime.block_on(later(client.requests.clone(), &format!("{millis}m")));
        assert_eq!(code, Some(Code::DEADLINE_EXCEEDED.0));
        millis *= 4;
    }
}

#[test]
fn no_thread_waits_for_what_is_held() {
    let running = Running::new(Options {
        room: 1,
        ..Options::default()
    });

    // Far more than there is room for to be answered, or threads to wait.
    let codes = held_one_by_one(&running, 50);

    assert_eq!(codes, [Some(0); 50]);
}

fn held_one_by_one(running: &Running, count: usize) -> Vec<Option<u8>> {
    let (runtime, client) = running.client();
    runtime.block_on(async {
        let mut calls = Vec::new();
        for number in 1..=count {
            calls.push(tokio::spawn(later(client.requests.clone(), FAR)));
            while running.answered() < number {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        running.stage.publish(REVISION);
        let mut codes = Vec::new();
        for call in calls {
            codes.push(call.await.unwrap());
        }
        codes
    })
}
