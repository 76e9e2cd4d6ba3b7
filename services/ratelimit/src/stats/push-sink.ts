import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LineTransport } from './line-transport.ts';
import type { StatsSnapshot } from './stats-registry.ts';
import type { StatsSink } from './stats-sink.ts';
import type { LineEncoder } from './statsd-encoder.ts';

/** What a push sink is made of. */
export interface PushSinkParts {
  readonly name: string;
  readonly encoder: LineEncoder;
  readonly transport: LineTransport;
}

/** More timings than this in a second are not sent one by one: percentiles hold without them, the network might not. */
const maxTimingsPerTake = 10_000;
const timingsEveryMs = 1000;

/**
 * After so many characters other work runs and the socket gets to send: 100,000 busy rules are 20 MB of lines, more than
 * the transport would buffer at once and a third of a second of decisions.
 */
const charsPerTurn = 65_536;
/** When so many snapshots wait, flushes come faster than turns; then they are worked off in one go. */
const maxWaiting = 4;

/** Makes a sink that sends each snapshot as lines, in chunks of the size that its transport likes. */
export function createPushSink({ name, encoder, transport }: PushSinkParts): StatsSink {
  const waiting: StatsSnapshot[] = [];
  let busy = false;
  let sent = Promise.resolve();

  async function sendWaiting(): Promise<void> {
    busy = true;
    let chars = 0;
    for (let snapshot = waiting.shift(); snapshot !== undefined; snapshot = waiting.shift()) {
      for (const chunk of chunksOf(linesOf(snapshot, encoder), transport.maxChunkBytes)) {
        if (chars >= charsPerTurn && waiting.length < maxWaiting) {
          await nextTurn();
          chars = 0;
        }
        transport.send(chunk);
        chars += chunk.length;
      }
    }
    busy = false;
  }

  return {
    name,
    timings: { max: maxTimingsPerTake, everyMs: timingsEveryMs },
    start() {
      transport.start();
      return Promise.resolve();
    },
    flush(snapshot) {
      waiting.push(snapshot);
      if (!busy) sent = sendWaiting();
    },
    async close() {
      await sent;
      await transport.close();
    },
  };
}

function* linesOf(snapshot: StatsSnapshot, encoder: LineEncoder): Generator<string> {
  for (const sample of snapshot.counters) yield encoder.counter(sample);
  for (const sample of snapshot.gauges) yield encoder.gauge(sample);
  for (const sample of snapshot.timers) yield* encoder.timings(sample);
}

/** Packs lines together up to a size; a line that is longer by itself goes alone. */
function* chunksOf(lines: Iterable<string>, maxBytes: number): Generator<string> {
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
