// Why not the transport of `hot-shots` 17: over TCP it writes to a socket that may be connecting or stalled without any
// bound, so a dead server grows our memory; it makes a new connection only when a later send fails, and loses what was
// queued; it encodes as ASCII, which mangles names with other letters; and it reads tags and hosts from DD_*
// variables by itself. What remained of it for plain statsd would be one template string per line.
import type { LineTransportDeps } from './line-transport.ts';
import { createPushSink } from './push-sink.ts';
import type { StatTags } from './stats-registry.ts';
import type { StatsSink } from './stats-sink.ts';
import { createStatsdEncoder } from './statsd-encoder.ts';
import { createTcpLineTransport } from './tcp-line-transport.ts';
import { createUdpLineTransport } from './udp-line-transport.ts';

/** How to reach the statsd server. */
export interface StatsdOptions {
  /** `STATSD_PROTOCOL`. */
  readonly protocol: 'tcp' | 'udp';
  /** `STATSD_HOST`. */
  readonly host: string;
  /** `STATSD_PORT`. */
  readonly port: number;
  /** `EXTRA_TAGS`, written into every name. */
  readonly extraTags: StatTags;
  /** Bound of what waits to be sent; default 4 MiB. */
  readonly maxBufferBytes?: number;
  /** TCP: how long to wait before connecting again; default 3 s. */
  readonly reconnectMs?: number;
}

/** Makes the push sink: counters as differences, gauges always, timings within a second. */
export function createStatsdSink(options: StatsdOptions, deps: LineTransportDeps): StatsSink {
  const transport =
    options.protocol === 'udp'
      ? createUdpLineTransport(options, deps)
      : createTcpLineTransport(options, deps);
  return createPushSink({ name: 'statsd', encoder: createStatsdEncoder(options.extraTags), transport });
}
