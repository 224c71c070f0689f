//! The sources of the messages of streams.

use std::sync::Arc;

use bytes::Bytes;

use super::status::Status;
use super::subscription::Subscription;

/// Makes the messages of a stream, in threads of the pool, one after the other.
pub trait Source: Send {
    /// The next message: asked for when the reader has room for it.
    fn next(&mut self) -> Next;

    /// The stream has ended, in any way. Called once.
    fn close(&mut self);
}

/// What comes next in a stream.
#[derive(Debug)]
pub enum Next {
    Message(Bytes),
    End,
    Failure(Status),
}

/// Closes sources where that may take time.
pub(super) trait Closer: Send + Sync {
    fn close(&self, source: Box<dyn Source>);
}

/// The messages of a stream. Their source is always closed at the end.
pub struct Flow {
    source: Option<Box<dyn Source>>,
    subscription: Option<Arc<Subscription>>,
    closer: Option<Arc<dyn Closer>>,
}

impl Flow {
    /// The source is asked for each message.
    pub fn pulled(source: Box<dyn Source>) -> Self {
        Self {
            source: Some(source),
            subscription: None,
            closer: None,
        }
    }

    /// Messages are put into the subscription; the source is only told of the end.
    pub fn pushed(subscription: Arc<Subscription>, source: Box<dyn Source>) -> Self {
        let mut flow = Self::pulled(source);
        flow.subscription = Some(subscription);
        flow
    }

    /// Has the source closed there from now on.
    pub(super) fn closed_by(&mut self, closer: Arc<dyn Closer>) {
        self.closer = Some(closer);
    }

    pub(super) fn subscription(&self) -> Option<&Arc<Subscription>> {
        self.subscription.as_ref()
    }

    pub(super) fn next(&mut self) -> Next {
        self.source
            .as_mut()
            .map_or(Next::End, |source| source.next())
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        if let Some(subscription) = &self.subscription {
            subscription.leave();
        }
        match (self.source.take(), &self.closer) {
            (Some(source), Some(closer)) => closer.close(source),
            (Some(mut source), None) => source.close(),
            (None, _) => {}
        }
    }
}
