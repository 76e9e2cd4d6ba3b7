// The transport of `hot-shots` 17 is not used: over TCP it writes to a connecting or stalled socket
// without a bound, so a dead server grows our memory; it reconnects only when a later send fails,
// and loses what was queued; it encodes as ASCII, which breaks names with other letters; and it
// reads tags and hosts from DD_* variables by itself.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { tagSuffix } from './names.ts';
import type { CounterSample, GaugeSample, StatsSnapshot, StatTags, TimerSample } from './registry.ts';
import type { StatsSink } from './sinks.ts';
import type { LineTransport, LineTransportOptions } from './statsd-transport.ts';
import { TcpTransport, UdpTransport } from './statsd-transport.ts';

export interface StatsdOptions extends LineTransportOptions {
  readonly protocol: 'tcp' | 'udp';
  readonly extraTags: StatTags;
  /** TCP: delay before reconnecting; default 3 s. */
  readonly reconnectMs?: number;
}

/** Sends counters as differences, all gauges, and timings within a second. */
export function createStatsdSink(options: StatsdOptions): StatsSink {
  const transport = options.protocol === 'udp' ? new UdpTransport(options) : new TcpTransport(options);
  return new StatsdSink(transport, new StatsdEncoder(options.extraTags));
}

/**
 * Further timings of a second are not sent: percentiles stay accurate, and the network is spared.
 */
const maxTimingsPerTake = 10_000;
const timingsEveryMs = 1000;

/**
 * After this many characters the event loop continues and the socket sends: 100,000 busy rules are
 * 20 MB of lines, more than the buffer of the transport, and would block decisions for a third of a
 * second.
 */
const charsPerTurn = 65_536;
/**
 * With this many waiting snapshots, flushes are faster than turns; then they are sent in one go.
 */
const maxWaiting = 4;

/** Formats a snapshot as lines. */
interface LineEncoder {
  encode(snapshot: StatsSnapshot): Iterable<string>;
}

export class StatsdSink implements StatsSink {
  readonly timings = { max: maxTimingsPerTake, everyMs: timingsEveryMs };
  readonly #transport: LineTransport;
  readonly #encoder: LineEncoder;
  readonly #waiting: StatsSnapshot[] = [];
  #isSending: boolean = false;
  #sent = Promise.resolve();

  constructor(transport: LineTransport, encoder: LineEncoder) {
    this.#transport = transport;
    this.#encoder = encoder;
  }

  start(): Promise<void> {
    this.#transport.start();
    return Promise.resolve();
  }

  flush(snapshot: StatsSnapshot): void {
    this.#waiting.push(snapshot);
    if (!this.#isSending) this.#sent = this.#sendWaiting();
  }

  async close(): Promise<void> {
    await this.#sent;
    await this.#transport.close();
  }

  async #sendWaiting(): Promise<void> {
    this.#isSending = true;
    let chars = 0;
    const waiting = this.#waiting;
    for (let snapshot = waiting.shift(); snapshot !== undefined; snapshot = waiting.shift()) {
      for (const chunk of toChunks(this.#encoder.encode(snapshot), this.#transport.maxChunkBytes)) {
        if (chars >= charsPerTurn && waiting.length < maxWaiting) {
          await nextTurn();
          chars = 0;
        }
        this.#transport.send(chunk);
        chars += chunk.length;
      }
    }
    this.#isSending = false;
  }
}

/** Joins lines up to a size; a longer line is a chunk by itself. */
function* toChunks(lines: Iterable<string>, maxBytes: number): Generator<string> {
  let chunk = '';
  let chunkBytes = 0;
  for (const line of lines) {
    const bytes = Buffer.byteLength(line);
    if (chunkBytes > 0 && chunkBytes + bytes > maxBytes) {
      yield chunk;
      chunk = '';
      chunkBytes = 0;
    }
    chunk += line;
    chunkBytes += bytes;
  }
  if (chunkBytes > 0) yield chunk;
}

/** Plain statsd: `name:delta|c`, `name:value|g`, `name:ms|ms`, with tags in the name. */
export class StatsdEncoder {
  readonly #extraTags: StatTags;
  readonly #extraSuffix: string;

  constructor(extraTags: StatTags) {
    this.#extraTags = extraTags;
    this.#extraSuffix = tagSuffix(extraTags);
  }

  *encode(snapshot: StatsSnapshot): Generator<string> {
    for (const sample of snapshot.counters) yield this.counter(sample);
    for (const sample of snapshot.gauges) yield this.gauge(sample);
    for (const sample of snapshot.timers) yield* this.timings(sample);
  }

  counter({ name, tags, delta }: CounterSample): string {
    return `${name}${this.#getSuffix(tags)}:${delta}|c\n`;
  }

  gauge({ name, tags, value }: GaugeSample): string {
    return `${name}${this.#getSuffix(tags)}:${value}|g\n`;
  }

  /** A line for each timing, in whole milliseconds. */
  timings({ name, tags, timingsMs }: TimerSample): string[] {
    const start = `${name}${this.#getSuffix(tags)}:`;
    return timingsMs.map((ms) => `${start}${Math.trunc(ms)}|ms\n`);
  }

  #getSuffix(tags: StatTags | undefined): string {
    return tags === undefined ? this.#extraSuffix : tagSuffix(this.#extraTags, tags);
  }
}
