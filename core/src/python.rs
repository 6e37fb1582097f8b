//! The extension module `latpcap._core`: takes bytes of captures and returns Arrow tables. No other file uses pyo3.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::SchemaRef;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyString, PyTuple};

use crate::capture::{self, NO_LINK};
use crate::decrypt;
use crate::engine::{End, Engine};
use crate::frame::{self, Unwrapped};
use crate::judge::{Because, Cause, Family, Grade, Hypothesis, Owner, Rule};
use crate::limits::{self, OF_FINDINGS};
use crate::messages::Protocol;
use crate::pattern;
use crate::records;
use crate::table;
use crate::watch::Watch;

/// The batches of one table. Implements the Arrow PyCapsule interface, so pyarrow, pandas and others read them without
/// a copy.
#[pyclass(frozen, module = "latpcap._core")]
struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // the interface allows a producer to ignore the requested schema
        let _ = requested_schema;
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(
            py,
            FFI_ArrowArrayStream::new(Box::new(reader)),
            c"arrow_array_stream",
        )
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// The analysis of one capture, which may be several files: bytes are pushed, tables are taken.
#[pyclass(module = "latpcap._core")]
struct Analysis {
    engine: Engine,
    link_error: LinkError,
}

/// The exception that the Python reader of rare layers raised. Kept here until the engine returns, then raised.
type LinkError = Arc<Mutex<Option<PyErr>>>;

/// A Python function that reads rare link layers and tunnels.
struct Links {
    read: Py<PyAny>,
    error: LinkError,
}

/// Converts a value of `latpcap.reading.links.Found` that is not a list.
fn unwrapped(answer: &Bound<'_, PyAny>) -> PyResult<Unwrapped> {
    if let Ok(word) = answer.cast::<PyString>() {
        return Ok(match word.to_str()? {
            "encrypted" => Unwrapped::Encrypted,
            "fragment" => Unwrapped::Fragment,
            _ => Unwrapped::Cut,
        });
    }
    if answer.is_instance_of::<PyTuple>() {
        let (layer, number, data) = answer.extract::<(String, u32, Vec<u8>)>()?;
        let layer = match layer.as_str() {
            "link" => "link",
            "ethertype" => "ethertype",
            _ => return Ok(Unwrapped::Unknown),
        };
        return Ok(Unwrapped::Layer(layer, number, data));
    }
    Ok(match answer.extract::<Option<Vec<u8>>>()? {
        Some(packet) if packet.is_empty() => Unwrapped::Empty,
        Some(packet) => Unwrapped::Packet(packet),
        None => Unwrapped::Unknown,
    })
}

impl frame::LinkReader for Links {
    fn unwrap(&mut self, layer: &'static str, number: u32, data: &[u8]) -> Unwrapped {
        let called = Python::attach(|py| -> PyResult<Unwrapped> {
            let answer = self.read.call1(py, (layer, number, PyBytes::new(py, data)))?;
            let answer = answer.bind(py);
            match answer.cast::<PyList>() {
                Ok(all) => Ok(Unwrapped::Several(
                    all.iter().map(|item| unwrapped(&item)).collect::<PyResult<_>>()?,
                )),
                Err(_) => unwrapped(answer),
            }
        });
        match called {
            Ok(unwrapped) => unwrapped,
            Err(error) => {
                if let Ok(mut first) = self.error.lock() {
                    first.get_or_insert(error);
                }
                Unwrapped::Unknown
            }
        }
    }
}

impl Analysis {
    /// Raises the exception of the reader of rare layers, if there was one.
    fn raise_link_error(&self) -> PyResult<()> {
        let error = self.link_error.lock().ok().and_then(|mut error| error.take());
        error.map_or(Ok(()), Err)
    }
}

#[pymethods]
impl Analysis {
    #[new]
    #[pyo3(signature = (links=None, keylog=None))]
    fn new(links: Option<Py<PyAny>>, keylog: Option<&[u8]>) -> Self {
        let mut engine = Engine::new();
        if let Some(text) = keylog {
            engine.pipeline().keylog(text);
        }
        let link_error = LinkError::default();
        engine.pipeline().links = links.map(|read| {
            let error = Arc::clone(&link_error);
            Box::new(Links { read, error }) as Box<dyn frame::LinkReader>
        });
        Analysis { engine, link_error }
    }

    #[pyo3(signature = (name=""))]
    fn next_file(&mut self, py: Python<'_>, name: &str) -> PyResult<()> {
        let engine = &mut self.engine;
        py.detach(|| engine.next_file(name));
        self.raise_link_error()
    }

    fn push(&mut self, py: Python<'_>, block: &Bound<'_, PyBytes>) -> PyResult<()> {
        let bytes = block.as_bytes();
        let engine = &mut self.engine;
        py.detach(|| engine.push(bytes));
        self.raise_link_error()
    }

    fn follow(&mut self, stream: u32) {
        self.engine.pipeline().watch = Some(Watch::new(stream));
    }

    fn followed<'py>(&mut self, py: Python<'py>) -> Vec<SeenFields<'py>> {
        let seen = self.engine.pipeline().watch.as_mut().map(Watch::take);
        let fields = seen.into_iter().flatten().map(|s| {
            let payload = PyBytes::new(py, &s.payload);
            (s.frame, s.from_first, s.seq, s.ack, s.flags, s.len, payload)
        });
        fields.collect()
    }

    fn watch_headers(&mut self) {
        self.engine.pipeline().watch = Some(Watch::headers());
    }

    fn headers<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let rows = self.engine.pipeline().watch.as_mut().map(Watch::take_headers);
        let numbers = rows.into_iter().flatten().flatten();
        PyBytes::new(py, &numbers.flat_map(i64::to_le_bytes).collect::<Vec<_>>())
    }

    fn watch_packets(&mut self) {
        self.engine.pipeline().watch = Some(Watch::packets());
    }

    fn packets<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let rows = self.engine.pipeline().watch.as_mut().map(Watch::take_packets);
        PyBytes::new(py, &rows.unwrap_or_default())
    }

    #[pyo3(signature = (ns, *, relative=false))]
    fn end(&mut self, ns: i64, relative: bool) {
        let end = if relative { End::After(ns) } else { End::At(ns) };
        self.engine.pipeline().end_at(end);
    }

    fn decryption(&mut self) -> Option<Decryption> {
        let decryption = self.engine.pipeline().decryption()?;
        Some(Decryption { decryption })
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<()> {
        let engine = &mut self.engine;
        py.detach(|| engine.finish());
        self.raise_link_error()
    }

    fn finish_some(&mut self, py: Python<'_>) -> PyResult<bool> {
        let engine = &mut self.engine;
        let more = py.detach(|| engine.finish_some());
        self.raise_link_error()?;
        Ok(more)
    }

    fn take(&mut self, name: &str) -> PyResult<Table> {
        match self.engine.pipeline().tables.take(name) {
            Some((schema, batches)) => Ok(Table { schema, batches }),
            None => Err(PyKeyError::new_err(name.to_string())),
        }
    }

    #[getter]
    fn frames(&self) -> u64 {
        self.engine.frames()
    }

    #[getter]
    fn format(&self) -> &'static str {
        self.engine.format()
    }

    #[getter]
    fn digits(&self) -> u8 {
        self.engine.digits()
    }

    #[getter]
    fn streams(&self) -> usize {
        self.engine.stream_count()
    }

    #[getter]
    fn zero_ns(&mut self) -> Option<i64> {
        self.engine.pipeline().zero_time
    }

    #[getter]
    fn first_ns(&mut self) -> Option<i64> {
        self.engine.pipeline().first_time
    }

    #[getter]
    fn last_ns(&mut self) -> Option<i64> {
        self.engine.pipeline().last_time
    }

    #[getter]
    fn halted(&self) -> bool {
        self.engine.halted()
    }

    /// File, offset and reason of the first file, if no file could be read.
    #[getter]
    fn refused(&self) -> Option<(String, u64, String)> {
        self.engine
            .refused()
            .map(|(file, issue)| (file.to_string(), issue.offset.unwrap_or(0), issue.sentence()))
    }
}

/// Frame, whether the sender of the first segment sent it, seq, ack, flags, length, captured payload.
type SeenFields<'py> = (u64, bool, i64, i64, u16, u32, Bound<'py, PyBytes>);
/// Frame, time in ns, link type (`None` for a record that is no packet), interface, captured bytes, original length.
type RecordFields<'py> = (u64, i64, Option<u32>, u32, Bound<'py, PyBytes>, u32);

/// A second pass over a capture, which returns its records.
#[pyclass(module = "latpcap._core")]
struct Records {
    records: records::Records,
}

#[pymethods]
impl Records {
    #[new]
    #[pyo3(signature = (frames=None))]
    fn new(frames: Option<Vec<u64>>) -> Self {
        Records {
            records: records::Records::new(frames),
        }
    }

    fn next_file(&mut self) {
        self.records.next_file();
    }

    fn push<'py>(&mut self, py: Python<'py>, block: &Bound<'py, PyBytes>) -> Vec<RecordFields<'py>> {
        let mut out = Vec::new();
        self.records.push(block.as_bytes(), &mut |r| {
            let link = (r.link != NO_LINK).then_some(r.link);
            let data = PyBytes::new(py, r.data);
            out.push((r.frame, r.time_ns, link, r.interface, data, r.original_len));
        });
        out
    }

    fn heads<'py>(&mut self, py: Python<'py>, block: &Bound<'py, PyBytes>) -> Bound<'py, PyBytes> {
        let mut out = Vec::new();
        self.records.push(block.as_bytes(), &mut |r| {
            for number in [r.time_ns, r.original_len.into(), r.data.len() as i64] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        });
        PyBytes::new(py, &out)
    }

    #[getter]
    fn done(&self) -> bool {
        self.records.done()
    }

    #[getter]
    fn frames(&self) -> u64 {
        self.records.frames()
    }
}

/// Frame, whether the sender of the first segment sent it, plaintext, number of bytes missing after it.
type PartFields<'py> = (u64, bool, Bound<'py, PyBytes>, u64);

/// Decrypts the bytes of one stream, which are fed in order.
#[pyclass(module = "latpcap._core")]
struct Decryption {
    decryption: decrypt::Decryption,
}

#[pymethods]
impl Decryption {
    fn feed<'py>(
        &mut self,
        py: Python<'py>,
        frame: u64,
        from_first: bool,
        data: &[u8],
        lost: u64,
    ) -> Vec<PartFields<'py>> {
        let part = decrypt::Part {
            frame,
            from_first,
            data: data.to_vec(),
            lost,
        };
        let parts = self.decryption.feed(part).into_iter();
        parts
            .map(|part| {
                (
                    part.frame,
                    part.from_first,
                    PyBytes::new(py, &part.data),
                    part.lost,
                )
            })
            .collect()
    }

    #[getter]
    fn opened(&self) -> bool {
        self.decryption.opened()
    }
}

/// A compiled regular expression over bytes.
#[pyclass(frozen, module = "latpcap._core")]
struct Pattern {
    pattern: regex::bytes::Regex,
}

#[pymethods]
impl Pattern {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let pattern = pattern::compiled(text).map_err(PyValueError::new_err)?;
        Ok(Pattern { pattern })
    }

    fn search(&self, data: &[u8]) -> bool {
        self.pattern.is_match(data)
    }
}

/// Returns the time of the first packet of the file that begins with `head`. `None` if `head` does not hold it.
#[pyfunction]
fn first_ns(py: Python<'_>, head: &Bound<'_, PyBytes>) -> Option<i64> {
    let bytes = head.as_bytes();
    py.detach(|| capture::first_time(bytes))
}

/// Returns the closed vocabularies by name: causes as tuples of name, meaning, owner, family, fix, colour and traits;
/// protocols with their traits; all others as pairs of word and meaning.
#[pyfunction]
fn vocabulary(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let words = PyDict::new(py);
    let causes = Cause::ALL.map(|c| {
        let family = c.family().word();
        let traits: Vec<&str> = c.traits().iter().map(|t| t.word()).collect();
        (
            c.word(),
            c.meaning(),
            c.owner(),
            family,
            c.fix(),
            c.colour(),
            traits,
        )
    });
    words.set_item("causes", causes.to_vec())?;
    let protocols = Protocol::ALL.iter().map(|p| {
        let traits: Vec<&str> = p.traits().iter().map(|t| t.word()).collect();
        (p.word(), traits)
    });
    words.set_item("protocols", protocols.collect::<Vec<_>>())?;
    words.set_item("owners", Owner::ALL.map(|w| (w.word(), w.meaning())).to_vec())?;
    words.set_item("families", Family::ALL.map(|w| (w.word(), w.meaning())).to_vec())?;
    words.set_item("grades", Grade::ALL.map(|w| (w.word(), w.meaning())).to_vec())?;
    words.set_item("rules", Rule::ALL.map(|w| (w.word(), w.meaning())).to_vec())?;
    words.set_item("becauses", Because::ALL.map(|w| (w.word(), w.meaning())).to_vec())?;
    words.set_item(
        "hypotheses",
        Hypothesis::ALL.map(|w| (w.word(), w.meaning())).to_vec(),
    )?;
    Ok(words)
}

/// Returns the limits of the findings, by name.
#[pyfunction]
#[pyo3(name = "limits")]
fn finding_limits() -> HashMap<&'static str, f64> {
    HashMap::from(OF_FINDINGS)
}

/// Returns the limits of the verdicts: name, value, unit, source and meaning.
#[pyfunction]
fn thresholds() -> Vec<(&'static str, f64, &'static str, &'static str, &'static str)> {
    let all = limits::all().into_iter();
    all.map(|l| (l.name, l.value, l.unit, l.source, l.doc)).collect()
}

/// Multiplies a limit, given by its index in `thresholds`.
#[cfg(feature = "scaled-limits")]
#[pyfunction]
fn scale_limit(index: usize, factor: f64) {
    limits::scaled::scale(index, factor);
}

/// Returns the indices of the limits that were read since the last call.
#[cfg(feature = "scaled-limits")]
#[pyfunction]
fn limits_read() -> Vec<usize> {
    limits::scaled::read()
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Analysis>()?;
    m.add_class::<Decryption>()?;
    m.add_class::<Pattern>()?;
    m.add_class::<Records>()?;
    m.add_class::<Table>()?;
    m.add_function(wrap_pyfunction!(first_ns, m)?)?;
    m.add_function(wrap_pyfunction!(vocabulary, m)?)?;
    m.add_function(wrap_pyfunction!(finding_limits, m)?)?;
    m.add_function(wrap_pyfunction!(thresholds, m)?)?;
    #[cfg(feature = "scaled-limits")]
    {
        m.add_function(wrap_pyfunction!(scale_limit, m)?)?;
        m.add_function(wrap_pyfunction!(limits_read, m)?)?;
    }
    m.add("TABLES", table::NAMES.to_vec())?;
    m.add("SCHEMA_VERSION", table::schema_version())?;
    Ok(())
}
