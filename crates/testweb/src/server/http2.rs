//! HTTP/2 over TLS, through a library: its frames leave little room for lies, and the rest is the same.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::header::{ACCEPT_ENCODING, IF_MODIFIED_SINCE, IF_NONE_MATCH, USER_AGENT};
use http::{HeaderName, HeaderValue, Response};
use tokio::task::JoinSet;

use super::Shared;
use super::accept::Wire;
use super::plan::{self, Manner, Reply};
use super::send::{DRIPS, ENDLESS, half};
use crate::log::{Pending, Proto, Request};

/// Requests of one connection served at the same time.
const MAX_STREAMS: u32 = 100;

fn fail(error: h2::Error) -> io::Error {
    io::Error::other(error)
}

/// Serves one connection until it ends; its streams are left in the set.
pub(super) async fn connection<S: Wire + 'static>(
    stream: S,
    conn: u64,
    shared: &Arc<Shared>,
    streams: &mut JoinSet<()>,
) -> io::Result<()> {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(MAX_STREAMS);
    let mut connection = builder.handshake::<_, Bytes>(stream).await.map_err(fail)?;
    let mut count = 0;
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            Some(_) = streams.join_next() => continue,
        };
        let Some(accepted) = accepted else { return Ok(()) };
        let (request, respond) = accepted.map_err(fail)?;
        count += 1;
        streams.spawn(answer(request, respond, conn, count, Arc::clone(shared)));
    }
}

async fn answer(
    parts: http::Request<h2::RecvStream>,
    mut respond: SendResponse<Bytes>,
    conn: u64,
    stream: u64,
    shared: Arc<Shared>,
) {
    let start = shared.log.now();
    let header = |name: HeaderName| parts.headers().get(name).map(HeaderValue::as_bytes);
    let authority = parts.uri().authority().map(|a| a.as_str().as_bytes());
    let target = parts.uri().path_and_query().map_or("/", |t| t.as_str());
    let request = Request {
        conn,
        stream,
        proto: Proto::Https2,
        host: authority.or_else(|| header(http::header::HOST)),
        method: parts.method().as_str().as_bytes(),
        target: target.as_bytes(),
        agent: header(USER_AGENT),
        if_none_match: header(IF_NONE_MATCH),
        if_modified_since: header(IF_MODIFIED_SINCE),
        accept_encoding: header(ACCEPT_ENCODING),
    };
    let mut pending = Pending::new(&shared.log, start, &request);
    let reply = plan::plan(&shared, &request, true);
    let wait = shared.latency + Duration::from_millis(reply.wait_ms);
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    pending.status = reply.status;
    // What the client does not wait for shows in the log as a cut request.
    let _ = send(&reply, &mut respond, &mut pending, &shared, request.method != b"HEAD").await;
}

async fn send(
    reply: &Reply,
    respond: &mut SendResponse<Bytes>,
    pending: &mut Pending<'_>,
    shared: &Shared,
    with_body: bool,
) -> Result<(), h2::Error> {
    match reply.manner {
        Manner::Silence => {
            // Until the client resets the stream or leaves.
            std::future::poll_fn(|cx| respond.poll_reset(cx)).await?;
            return Ok(());
        }
        Manner::HangUp => {
            respond.send_reset(Reason::INTERNAL_ERROR);
            return Ok(());
        }
        _ => {}
    }
    let mut head = Response::builder().status(reply.status).header("server", "testweb");
    for (name, value) in &reply.headers {
        head = head.header(*name, value);
    }
    let counted =
        !matches!(reply.manner, Manner::Chunked | Manner::UntilClose | Manner::Endless) && reply.status != 304;
    if counted {
        head = head.header("content-length", reply.body.len());
    }
    // Every name and value here is plain ASCII, so a head can always be built.
    let head = head.body(()).unwrap_or_default();
    pending.writing();
    if !with_body || (reply.body.is_empty() && reply.manner != Manner::Endless) {
        respond.send_response(head, true)?;
        pending.whole = true;
        return Ok(());
    }
    let mut stream = respond.send_response(head, false)?;
    match reply.manner {
        Manner::Drip => {
            let pause = Duration::from_millis(shared.world.config().slow_ms) / u32::try_from(DRIPS).unwrap_or(1);
            for piece in reply.body.chunks(reply.body.len().div_ceil(DRIPS).max(1)) {
                tokio::time::sleep(pause).await;
                data(&mut stream, piece, pending).await?;
            }
        }
        Manner::Reset => {
            data(&mut stream, half(&reply.body), pending).await?;
            stream.send_reset(Reason::INTERNAL_ERROR);
            return Ok(());
        }
        Manner::Stall => {
            data(&mut stream, half(&reply.body), pending).await?;
            std::future::poll_fn(|cx| stream.poll_reset(cx)).await?;
            return Ok(());
        }
        Manner::Endless => {
            while pending.bytes < shared.world.config().endless_bytes {
                data(&mut stream, ENDLESS, pending).await?;
            }
            return Ok(());
        }
        _ => data(&mut stream, &reply.body, pending).await?,
    }
    stream.send_data(Bytes::new(), true)?;
    pending.whole = true;
    Ok(())
}

/// Sends a piece of a body as the client's window opens.
async fn data(stream: &mut SendStream<Bytes>, piece: &[u8], pending: &mut Pending<'_>) -> Result<(), h2::Error> {
    let mut rest = Bytes::copy_from_slice(piece);
    while !rest.is_empty() {
        stream.reserve_capacity(rest.len());
        let granted = match std::future::poll_fn(|cx| stream.poll_capacity(cx)).await {
            Some(granted) => granted?,
            None => return Err(Reason::CANCEL.into()),
        };
        let now = rest.split_to(granted.min(rest.len()));
        pending.bytes += now.len() as u64;
        pending.writing();
        stream.send_data(now, false)?;
    }
    Ok(())
}
