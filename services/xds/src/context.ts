import type { Logger } from '@tollgate/kit/logger';
import type { Span, SpanOptions, Tracing } from '@tollgate/kit/telemetry';
import type { CatalogChange } from './catalog/catalog.ts';
import type { Snapshot } from './catalog/snapshot.ts';
import type { XdsMetrics } from './metrics.ts';

/** Parts that most of the service uses. */
export interface Context {
  readonly logger: Logger;
  readonly metrics: XdsMetrics;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  /** Undefined when tracing is off. */
  readonly trace?: PipelineTrace | undefined;
}

type Attributes = NonNullable<SpanOptions['attributes']>;

/** Lasts from a response until the limiter's answer. */
export interface PushSpan {
  readonly snapshot: Snapshot;
  end(outcome: 'ack' | 'nack' | 'superseded' | 'disconnected'): void;
}

/**
 * Spans of a change from the source to the limiters and back: `reconcile` contains `validate` and
 * `snapshot`; a snapshot is followed by a `push` per limiter, a change by a `status`. Pushes and
 * statuses start after their parent spans have ended, so that parents are stored by snapshot and
 * status.
 */
export class PipelineTrace {
  readonly #tracing: Tracing;
  readonly #snapshots = new WeakMap<Snapshot, Span>();
  readonly #statuses = new WeakMap<object, Span>();
  #reconcile: Span | undefined;

  constructor(tracing: Tracing) {
    this.#tracing = tracing;
  }

  reconcile(events: number, run: () => Promise<void>): Promise<void> {
    const attributes = { 'tollgate.xds.events': events };
    return this.#tracing.inSpan('reconcile', { parentSpan: null, attributes }, (span) => {
      this.#reconcile = span;
      return run();
    });
  }

  validate(run: () => Promise<CatalogChange>): Promise<CatalogChange> {
    return this.#tracing.inSpan('validate', {}, async (span) => {
      const change = await run();
      const rejected = change.results.filter(({ accepted }) => accepted.reason !== 'Accepted');
      span.setAttributes({
        'tollgate.xds.objects': change.results.length,
        'tollgate.xds.rejected': rejected.length,
        'tollgate.xds.reasons': [...new Set(rejected.map(({ accepted }) => accepted.reason))],
      });
      return change;
    });
  }

  /** `run` puts the snapshot in force; pushes that start then or later are children of the span. */
  snapshot(snapshot: Snapshot, attributes: Attributes, run: () => void): void {
    const span = this.#tracing.startSpan('snapshot', {
      attributes: {
        'tollgate.xds.version': snapshot.version,
        'tollgate.xds.domains': snapshot.resources.size,
        ...attributes,
      },
    });
    this.#snapshots.set(snapshot, span);
    try {
      this.#tracing.withSpan(span, run);
    } finally {
      span.end();
    }
  }

  /** Undefined for a snapshot that was not traced. */
  push(snapshot: Snapshot, attributes: Attributes): PushSpan | undefined {
    const parentSpan = this.#snapshots.get(snapshot);
    if (parentSpan === undefined) return undefined;
    const version = { 'tollgate.xds.version': snapshot.version };
    const span = this.#tracing.startSpan('push', { parentSpan, attributes: { ...attributes, ...version } });
    return {
      snapshot,
      end(outcome) {
        span.setAttribute('tollgate.xds.outcome', outcome);
        if (outcome === 'nack') span.setStatus({ code: errorStatus });
        span.end();
      },
    };
  }

  /** `run` reports the status of all objects and returns how many have changed. */
  report(run: () => Promise<number>): Promise<void> {
    const parentSpan = this.#reconcile ?? null;
    return this.#tracing.inSpan('status', { parentSpan }, async (span) => {
      span.setAttribute('tollgate.xds.statuses', await run());
    });
  }

  /** Remembers the active span as the parent of the write of a status. */
  reported(status: object): void {
    const span = this.#tracing.activeSpan();
    if (span !== undefined) this.#statuses.set(status, span);
  }

  write(status: object, attributes: Attributes, run: () => Promise<void>): Promise<void> {
    const parentSpan = this.#statuses.get(status);
    if (parentSpan === undefined) return run();
    return this.#tracing.inSpan('write status', { parentSpan, kind: clientKind, attributes }, run);
  }
}

/** Numbers of the OpenTelemetry API's SpanStatusCode and SpanKind. */
const errorStatus = 2;
const clientKind = 2;
