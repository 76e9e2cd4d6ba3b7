import { randomBytes } from 'node:crypto';
import type { MethodDefinition, ServerDuplexStream } from '@grpc/grpc-js';
import type { Stall } from '@tollgate/kit/grpc/connections';
import { peerIdentity } from '@tollgate/kit/grpc/peer';
import type { Logger } from '@tollgate/kit/logger';
import { monotonicNow } from '@tollgate/kit/time';
import { limiterClassBounds } from '@tollgate/rules/resource-shape';
import type { Snapshot, SnapshotStore } from '../catalog/snapshot.ts';
import type { Context, PushSpan } from '../context.ts';
import { type ClientRegistry, escapeClientText, RegisteredClient } from './clients.ts';
import {
  type AdsExchange,
  type AdsProtocol,
  type AdsRequest,
  type Answer,
  type ResponseCache,
  subscribedNames,
} from './exchange.ts';
import {
  maxIdentityLength,
  maxLimiterClasses,
  maxNameLength,
  maxNames,
  maxNodeIdLength,
  maxTypesPerStream,
  requestBudget,
  type StreamEnd,
  streamEnds,
} from './limits.ts';
import { getHost } from './open-streams.ts';
import { ResponseWriter, resetCall, type SendGate } from './send-gate.ts';

/** A call of either ADS method, with encoded messages. */
export type AdsCall = ServerDuplexStream<Uint8Array, Uint8Array>;

const toBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/** A method of the Aggregated Discovery Service. */
export function adsMethod(name: string): MethodDefinition<Uint8Array, Uint8Array> {
  return {
    path: `/envoy.service.discovery.v3.AggregatedDiscoveryService/${name}`,
    requestStream: true,
    responseStream: true,
    requestSerialize: toBuffer,
    requestDeserialize: (bytes) => bytes,
    responseSerialize: toBuffer,
    responseDeserialize: (bytes) => bytes,
  };
}

/** A type of resources, and its clients. */
export interface ServedType {
  readonly snapshots: SnapshotStore;
  readonly clients: ClientRegistry;
  readonly cache: ResponseCache;
  /** The log calls its clients so. */
  readonly clientNoun: 'limiter' | 'auth server';
  /** Called with the policies that an auth server says checks had, as it sent them. */
  readonly onSeenPolicies?: (names: unknown) => void;
}

export interface AdsStreamOptions {
  /** Unique in this process. */
  readonly id: string;
  /** Types by URL. A stream is served the first of them that it subscribes to. */
  readonly types: ReadonlyMap<string, ServedType>;
  readonly gate: SendGate;
  readonly sendTimeoutMs: number;
  /** Called with the rules that a limiter says have matched, as it sent them. */
  readonly onMatches: ((snapshot: Snapshot, matchedRules: unknown) => void) | undefined;
  readonly onRefused: (peer: string, node: string, end: StreamEnd) => void;
  /** Called once, when the stream has ended. */
  readonly onClose: () => void;
}

/**
 * One ADS stream: decodes requests, passes them to the exchange, and writes what is due, one
 * response at a time. An error of the client ends only its stream.
 */
export class AdsStream<Exchange extends AdsExchange, Request extends AdsRequest, Reply> {
  /** `address:port` of the client. */
  readonly peer: string;
  readonly #call: AdsCall;
  readonly #protocol: AdsProtocol<Exchange, Request, Reply>;
  readonly #context: Context;
  readonly #options: AdsStreamOptions;
  readonly #identity: string;
  readonly #openedMs: number;
  readonly #budget: RequestBudget;
  readonly #typeUrls = new Set<string>();
  readonly #writer: ResponseWriter;
  #unsubscribe: () => void = () => undefined;
  /** The type that the stream has subscribed to. */
  #served: ServedType | undefined;
  #logger: Logger;
  #nodeId = '';
  #limiterClass: string | undefined;
  /** The response that the client has acknowledged last. */
  #acknowledged: { readonly nonce: string; readonly snapshot: Snapshot } | undefined;
  #exchange: Exchange;
  #client: RegisteredClient | undefined;
  #subscribedMs = Number.POSITIVE_INFINITY;
  #lastNonce = 0;
  /** Only a client that has read a response can answer it. */
  readonly #noncePrefix = randomBytes(9).toString('base64url');
  #hasAnswered: boolean = false;
  /** Monotonic time since which the client owes a subscription or an answer. */
  #owesSinceMs: number | undefined = monotonicNow();
  #hasAcknowledged: boolean = false;
  #halfClosed: boolean = false;
  #closed: boolean = false;
  #pushSpan: PushSpan | undefined;

  constructor(
    call: AdsCall,
    protocol: AdsProtocol<Exchange, Request, Reply>,
    context: Context,
    options: AdsStreamOptions,
  ) {
    this.#call = call;
    this.#protocol = protocol;
    this.#context = context;
    this.#options = options;
    this.#exchange = protocol.newExchange;
    this.peer = call.getPeer();
    this.#identity = escapeClientText(peerIdentity(call), maxIdentityLength);
    this.#openedMs = context.nowMs();
    this.#budget = new RequestBudget(requestBudget, context.nowMs);
    this.#logger = context.logger.child({
      stream: options.id,
      peer: this.peer,
      protocol: protocol.label,
      ...(this.#identity !== '' && { identity: this.#identity }),
    });
    this.#writer = new ResponseWriter(call, {
      gate: options.gate,
      peer: getHost(this.peer),
      hasAcknowledged: () => this.#hasAcknowledged,
      sendTimeoutMs: options.sendTimeoutMs,
      onReady: () => (this.#halfClosed ? this.#finish() : this.#push()),
      onTimeout: () => this.end(streamEnds.slow),
    });
    context.metrics.streams.inc({ protocol: protocol.label });
    this.#listen();
  }

  /** Sends what is due. */
  #push(): void {
    if (this.#closed || this.#halfClosed || this.#writer.busy) return;
    if (this.#served === undefined) return;
    const { cache, snapshots } = this.#served;
    const snapshot = snapshots.currentOf(this.#limiterClass);
    const reply = snapshot && this.#protocol.due(this.#exchange, snapshot, cache);
    if (snapshot === undefined || reply === undefined) return;
    const nonce = `${this.#noncePrefix}${this.#lastNonce + 1}`;
    if (!this.#writer.write(this.#protocol.body(reply, cache), nonce)) return;
    this.#lastNonce += 1;
    this.#owesSinceMs ??= monotonicNow();
    this.#exchange = this.#protocol.sent(this.#exchange, reply, nonce);
    this.#context.metrics.pushes.inc({ protocol: this.#protocol.label });
    this.#tracePush(snapshot);
    this.#client?.sent(this.#protocol.rejected(this.#exchange));
  }

  end(end: StreamEnd): void {
    if (this.#closed) return;
    if (end.reason !== undefined) this.#options.onRefused(this.peer, this.#nodeId, end);
    this.#close(end.details);
    // The library takes the status of a bidirectional call from this event.
    this.#call.emit('error', { code: end.code, details: end.details });
  }

  /** Undefined when the client owes neither a subscription nor an answer. */
  get stall(): Stall | undefined {
    const sinceMs = this.#owesSinceMs;
    return sinceMs === undefined ? undefined : { hasAnswered: this.#hasAnswered, sinceMs };
  }

  /** Ends the stream, and drops what the client does not read. */
  cutOff(end: StreamEnd): void {
    this.end(end);
    resetCall(this.#call);
  }

  #listen(): void {
    const call = this.#call;
    call.on('data', (bytes: Uint8Array) => {
      const end = this.#closed ? undefined : this.#receive(bytes);
      if (end !== undefined) this.end(end);
    });
    call.on('end', () => {
      this.#halfClosed = true;
      if (!this.#writer.busy) this.#finish();
    });
    call.on('error', () => this.#close('failed'));
    call.on('close', () => this.#close('connection lost or call cancelled'));
  }

  /** Returns the reason to end the stream, if there is one. */
  #receive(bytes: Uint8Array): StreamEnd | undefined {
    if (!this.#budget.take(bytes.length)) return streamEnds.flood;
    const request = this.#decode(bytes);
    if (request === undefined) return streamEnds.malformed;
    this.#setNode(request.nodeId);
    const violation = this.#findViolation(request) ?? this.#setClass(request.limiterClass);
    if (violation !== undefined) return violation;
    // Subscriptions to unknown types get no response: other types may share the stream.
    return this.#serves(request.typeUrl) ? this.#handle(request) : undefined;
  }

  #serves(typeUrl: string): boolean {
    const type = this.#options.types.get(typeUrl);
    if (type === undefined) return false;
    if (this.#served === undefined) {
      this.#served = type;
      this.#unsubscribe = type.snapshots.onChange(() => this.#push());
    }
    return this.#served === type;
  }

  #decode(bytes: Uint8Array): Request | undefined {
    try {
      return this.#protocol.decode(bytes);
    } catch {
      return undefined;
    }
  }

  #setNode(id: string): void {
    if (this.#nodeId !== '' || id === '') return;
    this.#nodeId = escapeClientText(id, maxNodeIdLength).replaceAll('\n', ' ');
    this.#logger = this.#logger.child({ node: this.#nodeId });
  }

  /** The class is that of the first request which has one, before the subscription. */
  #setClass(limiterClass: unknown): StreamEnd | undefined {
    if (limiterClass === undefined || this.#client !== undefined) return undefined;
    if (typeof limiterClass !== 'string' || !limiterClassBounds.pattern.test(limiterClass))
      return streamEnds.invalidClass;
    for (const { clients } of this.#options.types.values()) {
      const classes = clients.classes();
      if (!classes.has(limiterClass) && classes.size >= maxLimiterClasses) return streamEnds.tooManyClasses;
    }
    this.#limiterClass = limiterClass;
    return undefined;
  }

  #findViolation(request: Request): StreamEnd | undefined {
    const { typeUrl, names } = request;
    if (typeUrl === '') return streamEnds.noTypeUrl;
    this.#typeUrls.add(typeUrl);
    if (this.#typeUrls.size > maxTypesPerStream || typeUrl.length > maxNameLength)
      return streamEnds.tooManyTypes;
    const isTooLarge = names.length > maxNames || names.some((name) => name.length > maxNameLength);
    return isTooLarge ? streamEnds.tooManyNames : undefined;
  }

  #handle(request: Request): StreamEnd | undefined {
    const { exchange, answer } = this.#protocol.receive(this.#exchange, request);
    this.#exchange = exchange;
    const { subscription, owed } = exchange;
    if ((subscription?.names.size ?? 0) + (owed?.size ?? 0) > maxNames) return streamEnds.tooManyNames;
    this.#register(subscribedNames(subscription));
    if (answer.type !== 'none') this.#handleAnswer(answer);
    if (answer.type === 'ack') this.#acknowledged = { nonce: request.nonce, snapshot: answer.snapshot };
    this.#handleMatches(request);
    // The names are those of policies: an auth server that has refused a set has checks, too.
    if (request.seenPolicies !== undefined) this.#served?.onSeenPolicies?.(request.seenPolicies);
    if (answer.type !== 'none' || this.#lastNonce === 0) this.#owesSinceMs = undefined;
    this.#push();
    return undefined;
  }

  /** A repeated ACK says which rules of the response have matched. */
  #handleMatches({ matchedRules, nonce }: Request): void {
    if (matchedRules === undefined || this.#acknowledged?.nonce !== nonce) return;
    this.#client?.setReportsMatches();
    this.#options.onMatches?.(this.#acknowledged.snapshot, matchedRules);
  }

  #register(names: ReadonlySet<string> | undefined): void {
    if (this.#client !== undefined) {
      this.#client.setNames(names);
      return;
    }
    const { id } = this.#options;
    if (this.#served === undefined) return;
    const { clients, cache } = this.#served;
    const { nowMs } = this.#context;
    this.#subscribedMs = nowMs();
    this.#client = new RegisteredClient(
      {
        id,
        nodeId: this.#nodeId,
        identity: this.#identity,
        peer: this.peer,
        names,
        protocol: this.#protocol.label,
        connectedMs: this.#openedMs,
        limiterClass: this.#limiterClass,
      },
      { clients, cache, nowMs },
    );
    this.#logger.info(`${this.#served.clientNoun} connected`);
  }

  #handleAnswer(answer: Exclude<Answer, { type: 'none' }>): void {
    const { metrics } = this.#context;
    const { label } = this.#protocol;
    const { snapshot } = answer;
    this.#hasAnswered = true;
    this.#endPushSpan(snapshot, answer.type);
    if (answer.type === 'ack') {
      this.#hasAcknowledged = true;
      metrics.acks.inc({ protocol: label });
      this.#observePropagation(snapshot);
      this.#client?.accept(snapshot, answer.accepted, answer.rejected);
      return;
    }
    metrics.nacks.inc({ protocol: label });
    this.#logger.warn(
      { version: snapshot.version, rejection: answer.rejected.message },
      `${this.#served?.clientNoun} rejected the configuration`,
    );
    this.#client?.reject(snapshot, answer.rejected);
  }

  /** When the snapshot came into force; undefined for clients that subscribed later. */
  #changedMs(snapshot: Snapshot): number | undefined {
    const sinceMs = this.#served?.snapshots.sinceMs(snapshot);
    return sinceMs !== undefined && sinceMs >= this.#subscribedMs ? sinceMs : undefined;
  }

  #observePropagation(snapshot: Snapshot): void {
    const changedMs = this.#changedMs(snapshot);
    if (changedMs === undefined) return;
    const { metrics, nowMs } = this.#context;
    metrics.propagationSeconds.observe(Math.max(0, nowMs() - changedMs) / 1_000);
  }

  #tracePush(snapshot: Snapshot): void {
    const { trace } = this.#context;
    if (trace === undefined) return;
    this.#pushSpan?.end('superseded');
    const attributes = { 'tollgate.xds.protocol': this.#protocol.label, 'tollgate.xds.node': this.#nodeId };
    this.#pushSpan = this.#changedMs(snapshot) === undefined ? undefined : trace.push(snapshot, attributes);
  }

  #endPushSpan(snapshot: Snapshot, answer: 'ack' | 'nack'): void {
    if (this.#pushSpan?.snapshot !== snapshot) return;
    this.#pushSpan.end(answer);
    this.#pushSpan = undefined;
  }

  /** The client has half-closed: the server closes behind the response in flight. */
  #finish(): void {
    this.#close('ended by the client');
    this.#call.end();
  }

  #close(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#unsubscribe();
    this.#writer.leave();
    this.#pushSpan?.end('disconnected');
    this.#context.metrics.streams.dec({ protocol: this.#protocol.label });
    this.#client?.remove();
    if (this.#client !== undefined) this.#logger.info({ reason }, `${this.#served?.clientNoun} disconnected`);
    this.#options.onClose();
  }
}

export interface RequestBudgetOptions {
  readonly burst: number;
  readonly perSecond: number;
  /** A request costs one token per started block of this size. */
  readonly bytesPerRequest: number;
}

/** A token bucket for the requests of one stream. */
export class RequestBudget {
  readonly #options: RequestBudgetOptions;
  readonly #nowMs: () => number;
  #left: number;
  #lastMs: number;

  constructor(options: RequestBudgetOptions, nowMs: () => number) {
    this.#options = options;
    this.#nowMs = nowMs;
    this.#left = options.burst;
    this.#lastMs = nowMs();
  }

  /** False when the budget does not cover a request of this size. */
  take(bytes: number): boolean {
    const { burst, perSecond, bytesPerRequest } = this.#options;
    const nowMs = this.#nowMs();
    const elapsedMs = Math.max(0, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
    this.#left = Math.min(burst, this.#left + (elapsedMs * perSecond) / 1_000);
    const cost = Math.max(1, Math.ceil(bytes / bytesPerRequest));
    if (this.#left < cost) return false;
    this.#left -= cost;
    return true;
  }
}
