import type { ServerDuplexStream } from '@grpc/grpc-js';
import { peerIdentity } from '@tollgate/kit/grpc/peer';
import type { Logger } from '@tollgate/kit/logger';
import { rateLimitConfigType, type Snapshot, type SnapshotStore } from '../catalog/snapshot.ts';
import type { XdsMetrics } from '../metrics.ts';
import type { PipelineTrace, PushSpan } from '../tracing.ts';
import { type ClientRegistry, clientText, createLimiterRecord, type LimiterRecord } from './limiters.ts';
import {
  maxIdentityLength,
  maxNameLength,
  maxNames,
  maxNodeIdLength,
  maxTypesPerStream,
  requestBudget,
  type StreamEnd,
  streamEnds,
} from './limits.ts';
import { createResponseWriter } from './response-writer.ts';
import type { ResponseCache } from './responses.ts';
import type { SendGate } from './send-gate.ts';
import type { LogRefusal } from './server.ts';
import type { Verdict } from './sotw.ts';
import type { AdsProtocol, AdsRequest } from './subscription.ts';

/** The address of a peer without its port: what its connections have in common. */
export function hostOf(peer: string): string {
  return peer.replace(/:\d+$/, '');
}

/** Tells a client that talks from one that floods. */
export interface RequestBudget {
  /** Takes what a request of this length costs; false when there is not as much left. */
  take(bytes: number): boolean;
}

/** What a budget grants. */
export interface RequestBudgetOptions {
  /** Requests at once. */
  readonly burst: number;
  /** Requests earned back with each second. */
  readonly perSecond: number;
  /** A request costs as much as one for each of these that it has begun: a large one takes long to read. */
  readonly bytesPerRequest: number;
}

/** Makes a full budget. */
export function createRequestBudget(
  { burst, perSecond, bytesPerRequest }: RequestBudgetOptions,
  nowMs: () => number,
): RequestBudget {
  let left = burst;
  let lastMs = nowMs();
  return {
    take(bytes) {
      const elapsedMs = Math.max(0, nowMs() - lastMs);
      lastMs = nowMs();
      left = Math.min(burst, left + (elapsedMs * perSecond) / 1_000);
      const cost = Math.max(1, Math.ceil(bytes / bytesPerRequest));
      if (left < cost) return false;
      left -= cost;
      return true;
    },
  };
}

/** A call of either ADS method, its messages as bytes. */
export type AdsCall = ServerDuplexStream<Uint8Array, Uint8Array>;

/** One open stream. */
export interface AdsStream {
  /** Sends what is due, if anything is: to be called whenever there is a new snapshot. */
  push(): void;
  end(end: StreamEnd): void;
}

/** What a stream takes. */
export interface AdsStreamDeps {
  readonly snapshots: SnapshotStore;
  readonly clients: ClientRegistry;
  readonly metrics: XdsMetrics;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly cache: ResponseCache;
  readonly gate: SendGate;
  readonly sendTimeoutMs: number;
  /** When a snapshot came into force, in milliseconds of `nowMs`; undefined for one that was there from the start. */
  readonly inForceSinceMs: (snapshot: Snapshot) => number | undefined;
  readonly logRefusal: LogRefusal;
  /** Undefined when nothing is traced. */
  readonly trace?: PipelineTrace | undefined;
  /** Called once, when the stream is over. */
  readonly onClose: () => void;
}

/**
 * Serves one stream: decodes what comes, feeds it to the exchange of its type, and writes what is due, one response at a
 * time. What the client does wrong ends this stream and no other.
 */
export function serveAdsStream<Exchange, Request extends AdsRequest, Reply>(
  call: AdsCall,
  id: string,
  protocol: AdsProtocol<Exchange, Request, Reply>,
  deps: AdsStreamDeps,
): AdsStream {
  const { snapshots, metrics, nowMs } = deps;
  const { label } = protocol;
  const peer = call.getPeer();
  const identity = clientText(peerIdentity(call), maxIdentityLength);
  const openedMs = nowMs();
  const budget = createRequestBudget(requestBudget, nowMs);
  const typeUrls = new Set<string>();
  let logger = deps.logger.child({ stream: id, peer, protocol: label, ...(identity !== '' && { identity }) });
  let nodeId = '';
  let exchange = protocol.newExchange;
  let record: LimiterRecord | undefined;
  let subscribedMs = Number.POSITIVE_INFINITY;
  let nonces = 0;
  let hasAcknowledged = false;
  let halfClosed = false;
  let closed = false;
  let pushed: PushSpan | undefined;

  function receive(bytes: Uint8Array): void {
    if (closed) return;
    const why = takeIn(bytes);
    if (why !== undefined) end(why);
  }

  /** Answers why the stream has to end, when it has. */
  function takeIn(bytes: Uint8Array): StreamEnd | undefined {
    if (!budget.take(bytes.length)) return streamEnds.flood;
    const request = decode(bytes);
    if (request === undefined) return streamEnds.malformed;
    rememberNode(request.nodeId);
    const problem = problemOf(request);
    if (problem !== undefined) return problem;
    // A type that is not served is subscribed to in vain, and told so by silence: other types share the stream.
    return request.typeUrl === rateLimitConfigType ? answer(request) : undefined;
  }

  function decode(bytes: Uint8Array): Request | undefined {
    try {
      return protocol.decode(bytes);
    } catch {
      return undefined;
    }
  }

  function rememberNode(id: string): void {
    if (nodeId !== '' || id === '') return;
    nodeId = clientText(id, maxNodeIdLength).replaceAll('\n', ' ');
    logger = logger.child({ node: nodeId });
  }

  function problemOf(request: Request): StreamEnd | undefined {
    const { typeUrl } = request;
    if (typeUrl === '') return streamEnds.noTypeUrl;
    typeUrls.add(typeUrl);
    if (typeUrls.size > maxTypesPerStream || typeUrl.length > maxNameLength) return streamEnds.tooManyTypes;
    const names = protocol.namesOf(request);
    if (names.length > maxNames || names.some((name) => name.length > maxNameLength))
      return streamEnds.tooManyNames;
    return undefined;
  }

  function answer(request: Request): StreamEnd | undefined {
    const received = protocol.receive(exchange, request);
    exchange = received.exchange;
    if (protocol.countNames(exchange) > maxNames) return streamEnds.tooManyNames;
    subscribed(protocol.wantedNames(exchange));
    note(received.verdict);
    push();
    return undefined;
  }

  function subscribed(names: ReadonlySet<string> | undefined): void {
    if (record !== undefined) {
      record.asksFor(names);
      return;
    }
    subscribedMs = nowMs();
    const connection = { protocol: label, connectedMs: openedMs };
    record = createLimiterRecord(deps, { id, nodeId, identity, peer, names, ...connection });
    logger.info('limiter connected');
  }

  function note(verdict: Verdict): void {
    if (verdict.type !== 'none') tracePushEnd(verdict);
    if (verdict.type === 'accepted') {
      hasAcknowledged = true;
      metrics.acks.inc({ protocol: label });
      observePropagation(verdict.snapshot);
      record?.accepted(verdict.snapshot, verdict.has, verdict.refusal);
    } else if (verdict.type === 'rejected') {
      const { snapshot, refusal } = verdict;
      metrics.nacks.inc({ protocol: label });
      logger.warn(
        { version: snapshot.version, rejection: refusal.message },
        'limiter rejected the configuration',
      );
      record?.rejected(snapshot, refusal);
    }
  }

  /** Of who was there when the snapshot came; how long ago it came says nothing of one who came later. */
  function observePropagation(snapshot: Snapshot): void {
    const sinceMs = deps.inForceSinceMs(snapshot);
    if (sinceMs === undefined || sinceMs < subscribedMs) return;
    metrics.propagationSeconds.observe(Math.max(0, nowMs() - sinceMs) / 1_000);
  }

  /** Of who was there when the snapshot came: for those who come later nothing has changed. */
  function tracePush(snapshot: Snapshot): void {
    if (deps.trace === undefined) return;
    pushed?.end('superseded');
    const sinceMs = deps.inForceSinceMs(snapshot);
    const isNews = sinceMs !== undefined && sinceMs >= subscribedMs;
    const attributes = { 'tollgate.xds.protocol': label, 'tollgate.xds.node': nodeId };
    pushed = isNews ? deps.trace.push(snapshot, attributes) : undefined;
  }

  function tracePushEnd({ type, snapshot }: Exclude<Verdict, { type: 'none' }>): void {
    if (pushed?.snapshot !== snapshot) return;
    pushed.end(type === 'accepted' ? 'ack' : 'nack');
    pushed = undefined;
  }

  function push(): void {
    if (closed || halfClosed || writer.busy) return;
    const snapshot = snapshots.current();
    const reply = snapshot && protocol.due(exchange, snapshot);
    if (snapshot === undefined || reply === undefined) return;
    const nonce = String(nonces + 1);
    if (!writer.write(protocol.body(reply), nonce)) return;
    nonces += 1;
    exchange = protocol.sent(exchange, reply, nonce);
    metrics.pushes.inc({ protocol: label });
    tracePush(snapshot);
    record?.sent(protocol.refusalOf(exchange));
  }

  function end(why: StreamEnd): void {
    if (closed) return;
    if (why.reason !== undefined) {
      metrics.refusedStreams.inc({ reason: why.reason });
      deps.logRefusal({ peer, node: nodeId, reason: why.details });
    }
    close(why.details);
    // This is how the library wants to be told of a status.
    call.emit('error', { code: why.code, details: why.details });
  }

  /** The client has ended its half: so do we, behind what is on the way. */
  function finish(): void {
    close('ended by the limiter');
    call.end();
  }

  function close(reason: string): void {
    if (closed) return;
    closed = true;
    writer.leave();
    pushed?.end('disconnected');
    metrics.streams.dec({ protocol: label });
    record?.remove();
    if (record !== undefined) logger.info({ reason }, 'limiter disconnected');
    deps.onClose();
  }

  const writer = createResponseWriter(call, {
    gate: deps.gate,
    peer: hostOf(peer),
    hasAcknowledged: () => hasAcknowledged,
    sendTimeoutMs: deps.sendTimeoutMs,
    onReady: () => (halfClosed ? finish() : push()),
    onTimeout: () => end(streamEnds.slow),
  });
  metrics.streams.inc({ protocol: label });
  call.on('data', receive);
  call.on('end', () => {
    halfClosed = true;
    if (!writer.busy) finish();
  });
  call.on('error', () => close('failed'));
  call.on('close', () => close('connection lost or call cancelled'));
  return { push, end };
}
