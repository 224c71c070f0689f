//! The transport for Python: it is bound, started with callables that answer, run by one thread, worked for by others.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyCFunction, PyDict, PyTuple};
use remora_core::Core;
use remora_transport::{
    Answer, Answering, BOUNDS, Calls, Certificates, Code, Credentials, Flow, Handler, Health,
    Larger, Listener, Method, Next, Options, Page, Pages, Publication, Question, Refusals, Source,
    Status, Subscription, Tls, Transport, Unusable, expiry,
};

use super::core::PyCore;

/// Replies up to this size are copied: a larger one stays where it is until it is sent.
const SMALL_BYTES: usize = 1 << 10;

/// See `_native.pyi`.
#[pyclass(name = "Transport", module = "remora_server._native", frozen)]
struct PyTransport {
    options: Options,
    listeners: Mutex<Vec<Arc<Listener>>>,
    health: Arc<Health>,
    /// Until it is closed: what it calls leads back to this object, which Python's collector cannot see.
    started: Mutex<Option<Arc<Transport<Callables>>>>,
}

#[pymethods]
impl PyTransport {
    #[new]
    #[pyo3(signature = (
        *, room, connections, peer_connections, receive_limit_bytes, default_timeout,
        handshake_timeout=None, request_bytes=None, reply_bytes=None, connection_reply_bytes=None, pending_resets=None,
        flows=None, connection_flows=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        room: usize,
        connections: usize,
        peer_connections: usize,
        receive_limit_bytes: usize,
        default_timeout: f64,
        handshake_timeout: Option<f64>,
        request_bytes: Option<usize>,
        reply_bytes: Option<usize>,
        connection_reply_bytes: Option<usize>,
        pending_resets: Option<usize>,
        flows: Option<usize>,
        connection_flows: Option<usize>,
    ) -> PyResult<Self> {
        let usual = Options::default();
        let options = Options {
            room,
            connections,
            peer_connections,
            receive_limit_bytes,
            default_timeout: seconds(default_timeout)?,
            handshake_timeout: match handshake_timeout {
                Some(timeout) => seconds(timeout)?,
                None => usual.handshake_timeout,
            },
            request_bytes: request_bytes.unwrap_or(usual.request_bytes),
            reply_bytes: reply_bytes.unwrap_or(usual.reply_bytes),
            connection_reply_bytes: connection_reply_bytes.unwrap_or(usual.connection_reply_bytes),
            pending_resets: pending_resets.unwrap_or(usual.pending_resets),
            flows: flows.unwrap_or(usual.flows),
            connection_flows: connection_flows.unwrap_or(usual.connection_flows),
            ..usual
        };
        Ok(Self {
            options,
            listeners: Mutex::default(),
            health: Arc::default(),
            started: Mutex::default(),
        })
    }

    /// The upper bounds of the buckets of durations, in seconds.
    #[staticmethod]
    fn bounds() -> Vec<f64> {
        BOUNDS.iter().map(|bound| bound.as_secs_f64()).collect()
    }

    fn bind_unix(&self, path: PathBuf) -> PyResult<()> {
        self.listeners.lock().push(Arc::new(Listener::unix(&path)?));
        Ok(())
    }

    fn bind_tcp(&self, address: IpAddr, port: u16) -> PyResult<u16> {
        let (listener, port) = Listener::tcp(SocketAddr::new(address, port))?;
        self.listeners.lock().push(Arc::new(listener));
        Ok(port)
    }

    fn set_health(&self, service: &str, serving: bool) {
        self.health.set(service, serving);
    }

    #[pyo3(signature = (
        *, methods, identify, report, refusals, publication, connected=None, pages=None, tls=None, larger=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn start(
        &self,
        methods: Vec<(String, String, Py<PyAny>)>,
        identify: Py<PyAny>,
        report: Py<PyAny>,
        refusals: GivenRefusals,
        publication: Option<&Bound<'_, PyAny>>,
        connected: Option<Py<PyAny>>,
        pages: Option<Py<PyAny>>,
        tls: Option<PyRef<'_, PyTls>>,
        larger: Option<HashMap<String, (usize, Failure)>>,
    ) -> PyResult<()> {
        let mut callables = Vec::with_capacity(methods.len());
        let mut named = Vec::with_capacity(methods.len());
        for (path, answering, callable) in methods {
            let answering = answering_named(&answering)?;
            named.push(Method { path, answering });
            callables.push((answering, callable));
        }
        let refusals = Refusals::from(refusals);
        let handler = Callables {
            methods: callables,
            identify,
            report,
            connected,
            internal: refusals.internal.clone(),
        };
        let publication: Arc<dyn Publication> = match publication {
            Some(publication) => publication_of(publication),
            None => Arc::new(Everything),
        };
        let health = Arc::clone(&self.health);
        let options = self.options.clone();
        let mut started = self.started.lock();
        if started.is_some() {
            let refusal = "the transport is started already";
            return Err(PyRuntimeError::new_err(refusal));
        }
        let transport = Transport::new(options, handler, named, refusals, publication, health);
        let larger = larger.unwrap_or_default().into_iter();
        let transport = transport.with_larger(larger.map(|(path, (bytes, refusal))| {
            let refusal = refusal.into();
            (path, Larger { bytes, refusal })
        }));
        let transport = match pages {
            Some(pages) => transport.with_pages(Arc::new(CalledPages(pages))),
            None => transport,
        };
        let transport = match tls {
            Some(tls) => transport.with_tls(Arc::clone(&tls.0)),
            None => transport,
        };
        *started = Some(Arc::new(transport));
        Ok(())
    }

    fn run(&self, py: Python<'_>) -> PyResult<()> {
        let listeners = self.listeners.lock().clone();
        let transport = self.started()?;
        Ok(py.detach(|| transport.run(&listeners))?)
    }

    fn work(&self, py: Python<'_>) {
        // A worker that comes when it is closed has nothing to do.
        let started = self.started.lock().clone();
        if let Some(transport) = started {
            py.detach(|| transport.work());
        }
    }

    fn forget_callers(&self) {
        if let Some(transport) = self.started.lock().as_ref() {
            transport.forget_callers();
        }
    }

    fn calls(&self) -> Vec<MethodCalls> {
        let started = self.started.lock().clone();
        let calls = started.map(|transport| transport.calls());
        calls.into_iter().flatten().map(MethodCalls::from).collect()
    }

    fn subscription(&self) -> PyResult<PySubscription> {
        let subscription = self.started()?.subscription();
        Ok(PySubscription(Arc::new(subscription)))
    }

    fn stop(&self, grace: f64) -> PyResult<()> {
        let grace = seconds(grace)?;
        // One that is closed has stopped.
        if let Some(transport) = self.started.lock().as_ref() {
            transport.stop(grace);
        }
        Ok(())
    }

    fn close(&self) {
        self.listeners.lock().clear();
        let started = self.started.lock().take();
        if let Some(transport) = started {
            transport.close();
        }
    }
}

impl PyTransport {
    fn started(&self) -> PyResult<Arc<Transport<Callables>>> {
        let started = self.started.lock().clone();
        started.ok_or_else(|| PyRuntimeError::new_err("the transport is not started"))
    }
}

fn seconds(seconds: f64) -> PyResult<Duration> {
    let duration = Duration::try_from_secs_f64(seconds);
    duration.map_err(|_| PyValueError::new_err("not a number of seconds"))
}

fn answering_named(name: &str) -> PyResult<Answering> {
    match name {
        "quick" => Ok(Answering::Quick),
        "pool" => Ok(Answering::Pool),
        "each" => Ok(Answering::Each),
        "stream" => Ok(Answering::Stream),
        _ => Err(PyValueError::new_err(format!(
            "no way of answering: {name}"
        ))),
    }
}

/// See `_native.pyi`.
#[pyclass(name = "Tls", module = "remora_server._native", frozen)]
struct PyTls(Arc<Tls>);

#[pymethods]
impl PyTls {
    #[new]
    #[pyo3(signature = (chain, key, client_ca=None))]
    fn new(chain: &[u8], key: &[u8], client_ca: Option<&[u8]>) -> PyResult<Self> {
        let certificates = Certificates {
            chain,
            key,
            client_ca,
        };
        let tls = Tls::new(certificates).map_err(unusable)?;
        Ok(Self(Arc::new(tls)))
    }

    #[pyo3(signature = (chain, key, client_ca=None))]
    fn replace(&self, chain: &[u8], key: &[u8], client_ca: Option<&[u8]>) -> PyResult<()> {
        let certificates = Certificates {
            chain,
            key,
            client_ca,
        };
        self.0.replace(certificates).map_err(unusable)
    }

    #[staticmethod]
    fn expiry(chain: &[u8]) -> PyResult<u64> {
        expiry(chain).map_err(unusable)
    }
}

/// Which one, by its argument's name, and why.
fn unusable(unusable: Unusable) -> PyErr {
    let argument = match unusable {
        Unusable::Chain(_) => "chain",
        Unusable::Key(_) => "key",
        Unusable::ClientCa(_) => "client_ca",
    };
    PyValueError::new_err((argument, unusable.to_string()))
}

/// (path, how many ended by code, how many by bucket, seconds in all, how many are open, how many of these wait).
#[derive(IntoPyObject)]
struct MethodCalls(String, Vec<u64>, Vec<u64>, f64, usize, usize);

impl From<Calls> for MethodCalls {
    fn from(calls: Calls) -> Self {
        let seconds = calls.taken.as_secs_f64();
        Self(
            calls.path,
            calls.ended,
            calls.buckets,
            seconds,
            calls.open,
            calls.waiting,
        )
    }
}

/// Pages that Python makes.
struct CalledPages(Py<PyAny>);

impl Pages for CalledPages {
    fn page(&self, path: &str) -> Option<Page> {
        let made = Python::attach(|py| {
            let made = self.0.bind(py).call1((path,));
            made.and_then(|made| made.extract::<Option<(u16, String, PyBackedBytes)>>())
                .map_err(|error| error.write_unraisable(py, None))
        });
        let (status, content_type, body) = match made {
            Ok(made) => made.map(|(status, kind, body)| (status, kind, body.to_vec().into()))?,
            Err(()) => (
                500,
                "text/plain".to_owned(),
                Bytes::from_static(b"failed\n"),
            ),
        };
        Some(Page {
            status,
            content_type,
            body,
        })
    }
}

/// (code, message, encoded `google.rpc.Status`).
#[derive(FromPyObject)]
struct Failure(u8, String, PyBackedBytes);

impl From<Failure> for Status {
    fn from(Failure(code, message, details): Failure) -> Self {
        Self {
            code: Code(code),
            message,
            details: details.to_vec().into(),
        }
    }
}

/// `Refusals` by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct GivenRefusals {
    overloaded: Failure,
    peer_overloaded: Failure,
    deadline_exceeded: Failure,
    not_published: Failure,
    internal: Failure,
    stopping: Failure,
    slow_reader: Failure,
    malformed: Failure,
    too_large: Failure,
    unknown_compression: Failure,
    unknown_method: Failure,
}

impl From<GivenRefusals> for Refusals {
    fn from(given: GivenRefusals) -> Self {
        Self {
            overloaded: given.overloaded.into(),
            peer_overloaded: given.peer_overloaded.into(),
            deadline_exceeded: given.deadline_exceeded.into(),
            not_published: given.not_published.into(),
            internal: given.internal.into(),
            stopping: given.stopping.into(),
            slow_reader: given.slow_reader.into(),
            malformed: given.malformed.into(),
            too_large: given.too_large.into(),
            unknown_compression: given.unknown_compression.into(),
            unknown_method: given.unknown_method.into(),
        }
    }
}

/// Answers by calling Python.
struct Callables {
    methods: Vec<(Answering, Py<PyAny>)>,
    identify: Py<PyAny>,
    report: Py<PyAny>,
    connected: Option<Py<PyAny>>,
    internal: Status,
}

impl Handler for Callables {
    type Caller = Py<PyAny>;

    fn identify(&self, credentials: &Credentials<'_>) -> Result<Py<PyAny>, Status> {
        Python::attach(|py| {
            let names = credentials.names.map(<[String]>::to_vec);
            let arguments = (credentials.authorization, credentials.tenant, names);
            let told = self.identify.bind(py).call1(arguments);
            let told = told.map_err(|error| broken(py, &error, &self.internal))?;
            match told.extract::<Failure>() {
                Ok(failure) => Err(failure.into()),
                Err(_) => Ok(told.unbind()),
            }
        })
    }

    fn answer(&self, question: &Question<'_, Py<PyAny>>) -> Answer {
        Python::attach(|py| {
            let answer = self.call(py, question);
            answer.unwrap_or_else(|error| Answer::Failure(broken(py, &error, &self.internal)))
        })
    }

    fn together(&self, work: &mut dyn FnMut()) {
        Python::attach(|_| work());
    }

    fn report(&self, trouble: &str) {
        Python::attach(|py| {
            if let Err(error) = self.report.bind(py).call1((trouble,)) {
                error.write_unraisable(py, None);
            }
        });
    }

    fn connected(&self, user: u32, group: u32, process: i32) {
        let Some(connected) = &self.connected else {
            return;
        };
        Python::attach(|py| {
            if let Err(error) = connected.bind(py).call1((user, group, process)) {
                error.write_unraisable(py, None);
            }
        });
    }
}

impl Callables {
    fn call(&self, py: Python<'_>, question: &Question<'_, Py<PyAny>>) -> PyResult<Answer> {
        let Some((answering, method)) = self.methods.get(question.method) else {
            return Err(PyRuntimeError::new_err("there is no such method"));
        };
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        let answered = method.bind(py).call1((
            PyBytes::new(py, question.message),
            question.caller.bind(py),
            question
                .deadline
                .map(|deadline| left(deadline).as_secs_f64()),
            question.traceparent,
        ))?;
        if answered.is_none() {
            return Ok(Answer::WouldWait);
        }
        let parts = answered.cast::<PyTuple>()?;
        if parts.len() == 3 {
            return Ok(Answer::Failure(parts.extract::<Failure>()?.into()));
        }
        if *answering == Answering::Stream {
            return Ok(Answer::Stream(self.flow(parts)?));
        }
        let message = parts.get_item(0)?;
        Ok(Answer::Reply {
            message: bytes_of(message.cast_into()?),
            after: parts.get_item(1)?.extract()?,
        })
    }
}

impl Callables {
    /// A stream's source and, where it waits, its subscription.
    fn flow(&self, parts: &Bound<'_, PyTuple>) -> PyResult<Flow> {
        let source = Box::new(PulledFromPython {
            source: parts.get_item(0)?.unbind(),
            internal: self.internal.clone(),
        });
        let subscription: Option<Bound<'_, PySubscription>> = parts.get_item(1)?.extract()?;
        Ok(match subscription {
            None => Flow::pulled(source),
            Some(subscription) => Flow::pushed(Arc::clone(&subscription.get().0), source),
        })
    }
}

/// A source whose messages Python makes.
struct PulledFromPython {
    source: Py<PyAny>,
    internal: Status,
}

impl PulledFromPython {
    fn pull(&self, py: Python<'_>) -> PyResult<Next> {
        let pulled = self.source.bind(py).call_method0("next")?;
        if pulled.is_none() {
            return Ok(Next::End);
        }
        if let Ok(message) = pulled.cast::<PyBytes>() {
            return Ok(Next::Message(bytes_of(message.clone())));
        }
        Ok(Next::Failure(pulled.extract::<Failure>()?.into()))
    }
}

impl Source for PulledFromPython {
    fn next(&mut self) -> Next {
        Python::attach(|py| {
            let next = self.pull(py);
            next.unwrap_or_else(|error| Next::Failure(broken(py, &error, &self.internal)))
        })
    }

    fn close(&mut self) {
        Python::attach(|py| {
            if let Err(error) = self.source.bind(py).call_method0("close") {
                error.write_unraisable(py, None);
            }
        });
    }
}

/// See `_native.pyi`.
#[pyclass(name = "Subscription", module = "remora_server._native", frozen)]
struct PySubscription(Arc<Subscription>);

#[pymethods]
impl PySubscription {
    fn push(&self, message: &Bound<'_, PyBytes>) -> bool {
        self.0.push(bytes_of(message.clone()))
    }

    #[pyo3(signature = (failure=None))]
    fn close(&self, failure: Option<Failure>) {
        self.0.close(failure.map(Status::from));
    }
}

/// A reply's bytes. What is dropped without the interpreter's lock goes when somebody next takes that.
fn bytes_of(message: Bound<'_, PyBytes>) -> Bytes {
    match message.as_bytes() {
        small if small.len() <= SMALL_BYTES => Bytes::copy_from_slice(small),
        _ => Bytes::from_owner(PyBackedBytes::from(message)),
    }
}

/// What a caller learns of a callable that raised: nothing. Python's hook for such errors is told.
fn broken(py: Python<'_>, error: &PyErr, internal: &Status) -> Status {
    error.clone_ref(py).write_unraisable(py, None);
    internal.clone()
}

/// A core's publication is asked without the interpreter, any other by its methods.
fn publication_of(given: &Bound<'_, PyAny>) -> Arc<dyn Publication> {
    match given.cast::<PyCore>() {
        Ok(core) => Arc::new(OfCore(Arc::clone(core.get().core()))),
        Err(_) => Arc::new(OfPython(given.clone().unbind())),
    }
}

/// The publication of a core's journal.
struct OfCore(Arc<Core>);

impl Publication for OfCore {
    fn published(&self) -> u64 {
        self.0.journal().published()
    }

    fn has_ended(&self) -> bool {
        self.0.journal().ended().is_some()
    }

    fn follow(&self, changed: Arc<dyn Fn() + Send + Sync>) {
        // A second transport of a core would be told nothing; `Transport` is made once for each.
        self.0.journal().follow(changed);
    }
}

/// A publication that is Python's. One that fails has ended: what it held back is not acknowledged.
struct OfPython(Py<PyAny>);

impl OfPython {
    /// What a method returns; `None` if it raises, which Python's hook for such errors is told.
    fn ask<T>(&self, ask: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        Python::attach(|py| {
            let told = ask(self.0.bind(py));
            told.map_err(|error| error.write_unraisable(py, None)).ok()
        })
    }
}

impl Publication for OfPython {
    fn published(&self) -> u64 {
        let told = self.ask(|publication| publication.call_method0("published")?.extract());
        told.unwrap_or(0)
    }

    fn has_ended(&self) -> bool {
        let told = self.ask(|publication| publication.call_method0("has_ended")?.extract());
        told.unwrap_or(true)
    }

    fn follow(&self, changed: Arc<dyn Fn() + Send + Sync>) {
        self.ask(|publication| {
            let told = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| changed();
            let changed = PyCFunction::new_closure(publication.py(), None, None, told)?;
            publication
                .call_method1("follow", (changed,))?
                .extract::<bool>()
        });
    }
}

/// Where nothing need be waited for.
struct Everything;

impl Publication for Everything {
    fn published(&self) -> u64 {
        u64::MAX
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn follow(&self, _changed: Arc<dyn Fn() + Send + Sync>) {}
}

/// Adds the names of this module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySubscription>()?;
    module.add_class::<PyTls>()?;
    module.add_class::<PyTransport>()
}
