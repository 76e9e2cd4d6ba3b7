import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { Attributes, Context, Span, SpanKind, TextMapPropagator, Tracer } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Logger } from './logger.ts';

export type { Span } from '@opentelemetry/api';

/** The service that telemetry is about. */
export type ResourceOptions = {
  readonly serviceName: string;
  /** Omitted when empty. */
  readonly serviceNamespace?: string;
  /** A random UUID when empty. */
  readonly serviceInstanceId?: string;
  /** Further attributes, such as the version of the build. */
  readonly resourceAttributes?: Attributes;
};

/**
 * The resource of traces and metrics: the SDK's own attributes, then `OTEL_RESOURCE_ATTRIBUTES`,
 * then the options.
 *
 * @see https://opentelemetry.io/docs/specs/semconv/resource/#service
 */
export async function makeResource(options: ResourceOptions): Promise<Resource> {
  const { defaultResource, detectResources, resourceAttributesEnvDetector, resourceFromAttributes } =
    await import('@opentelemetry/resources');
  const { serviceName, serviceNamespace, serviceInstanceId, resourceAttributes } = options;
  return defaultResource()
    .merge(detectResources({ detectors: [resourceAttributesEnvDetector] }))
    .merge(
      resourceFromAttributes({
        'service.name': serviceName,
        ...(serviceNamespace && { 'service.namespace': serviceNamespace }),
        'service.instance.id': serviceInstanceId || randomUUID(),
        ...resourceAttributes,
      }),
    );
}

/** OTLP over HTTP (`http` is JSON) or gRPC. */
export type OtlpProtocol = 'http' | 'http/protobuf' | 'grpc';

/**
 * Options of tracing. The exporter reads its target from the standard `OTEL_EXPORTER_OTLP_*`
 * variables.
 */
export type TracingOptions = ResourceOptions & {
  readonly enabled: boolean;
  readonly protocol: OtlpProtocol;
  /** Fraction of traces that is sampled when the caller has not decided, 0 to 1. */
  readonly samplingRate: number;
  readonly logger?: Logger;
};

/** Options of a span. */
export type SpanOptions = {
  /**
   * Parent context: from `extract`, or passed to the function of an outer span. Default: the active
   * span.
   */
  readonly parent?: Context;
  /** Parent span, instead of `parent`; null starts a new trace. */
  readonly parentSpan?: Span | null;
  /** `SpanKind` of the OpenTelemetry API: 0 internal (default), 1 server, 2 client. */
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
};

type Api = typeof import('@opentelemetry/api');

/**
 * Starts tracing. When it is off, only the OpenTelemetry API is loaded, and spans cost next to
 * nothing.
 */
export async function startTracing(options: TracingOptions): Promise<Tracing> {
  const api = await import('@opentelemetry/api');
  if (!options.enabled)
    return new Tracing(api, { tracer: new api.ProxyTracerProvider().getTracer('tollgate') });
  const provider = await makeProvider(options);
  return new Tracing(api, {
    tracer: provider.getTracer('tollgate'),
    propagator: await makePropagator(),
    provider,
  });
}

/** The parts of tracing that are present only when it is enabled, and the tracer. */
type TracingParts = {
  readonly tracer: Tracer;
  readonly propagator?: TextMapPropagator;
  readonly provider?: TracerProvider;
};

/**
 * Spans, and their propagation into and out of the process. Not global: only this object knows the
 * active span.
 */
export class Tracing {
  readonly tracer: Tracer;
  readonly #api: Api;
  readonly #propagator: TextMapPropagator | undefined;
  readonly #provider: TracerProvider | undefined;
  readonly #contexts: AsyncLocalStorage<Context> | undefined;
  #ended: Promise<void> | undefined;

  constructor(api: Api, { tracer, propagator, provider }: TracingParts) {
    this.tracer = tracer;
    this.#api = api;
    this.#propagator = propagator;
    this.#provider = provider;
    this.#contexts = provider && new AsyncLocalStorage<Context>();
  }

  get enabled(): boolean {
    return this.#provider !== undefined;
  }

  /**
   * Reads the trace of a caller from lower-case header names: W3C tracecontext and baggage, B3
   * single and multi.
   */
  extract(carrier: Readonly<Record<string, string | string[] | undefined>>): Context {
    const { ROOT_CONTEXT, defaultTextMapGetter } = this.#api;
    return this.#propagator?.extract(ROOT_CONTEXT, carrier, defaultTextMapGetter) ?? ROOT_CONTEXT;
  }

  /** Writes the trace of a context into headers, in all of those formats. */
  inject(carrier: Record<string, string>, context: Context): void {
    this.#propagator?.inject(context, carrier, this.#api.defaultTextMapSetter);
  }

  /** The active span of the caller; undefined outside of all spans, and when tracing is off. */
  activeSpan(): Span | undefined {
    return this.#api.trace.getSpan(this.#active());
  }

  /** Starts a span, which the caller ends. */
  startSpan(name: string, options: SpanOptions = {}): Span {
    const { kind, attributes } = options;
    const spanOptions = { ...(kind && { kind }), ...(attributes && { attributes }) };
    return this.tracer.startSpan(name, spanOptions, this.#parentContext(options));
  }

  /** Makes a span the active one for a function and for everything that it awaits. */
  withSpan<T>(span: Span, fn: () => T): T {
    return this.#within(this.#api.trace.setSpan(this.#active(), span), fn);
  }

  /** Runs a function inside a new active span, which ends with it, as failed when it throws. */
  async inSpan<T>(
    name: string,
    options: SpanOptions,
    fn: (span: Span, context: Context) => Promise<T> | T,
  ): Promise<T> {
    const span = this.startSpan(name, options);
    try {
      const context = this.#api.trace.setSpan(this.#parentContext(options), span);
      return await this.#within(context, () => fn(span, context));
    } catch (error) {
      span.setStatus({
        code: this.#api.SpanStatusCode.ERROR,
        ...(error instanceof Error && { message: error.message }),
      });
      throw error;
    } finally {
      span.end();
    }
  }

  /** Exports the remaining spans and ends the export. Idempotent; never rejects. */
  shutdown(): Promise<void> {
    // Rejects with the error of the last export, which was logged.
    this.#ended ??= this.#provider?.shutdown().catch(() => undefined) ?? Promise.resolve();
    return this.#ended;
  }

  #active(): Context {
    return this.#contexts?.getStore() ?? this.#api.ROOT_CONTEXT;
  }

  #within<T>(context: Context, fn: () => T): T {
    return this.#contexts === undefined ? fn() : this.#contexts.run(context, fn);
  }

  #parentContext({ parent, parentSpan }: SpanOptions): Context {
    const { ROOT_CONTEXT, trace } = this.#api;
    if (parentSpan === undefined) return parent ?? this.#active();
    return parentSpan === null ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, parentSpan);
  }
}

async function makeProvider(options: TracingOptions): Promise<TracerProvider> {
  const sdk = await import('@opentelemetry/sdk-trace');
  const exporter = reportOutages(await makeExporter(options.protocol), options.logger);
  return new sdk.TracerProvider({
    resource: await makeResource(options),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(options.samplingRate) }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter })],
  });
}

async function makeExporter(protocol: TracingOptions['protocol']): Promise<SpanExporter> {
  if (protocol === 'grpc') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc');
    return new OTLPTraceExporter();
  }
  if (protocol === 'http/protobuf') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
    return new OTLPTraceExporter();
  }
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
  return new OTLPTraceExporter();
}

async function makePropagator(): Promise<TextMapPropagator> {
  const { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } = await import(
    '@opentelemetry/core'
  );
  const { B3InjectEncoding, B3Propagator } = await import('@opentelemetry/propagator-b3');
  // The last one that finds a trace wins: tracecontext when a caller sends both.
  return new CompositePropagator({
    propagators: [
      new B3Propagator({ injectEncoding: B3InjectEncoding.SINGLE_HEADER }),
      new B3Propagator({ injectEncoding: B3InjectEncoding.MULTI_HEADER }),
      new W3CTraceContextPropagator(),
      new W3CBaggagePropagator(),
    ],
  });
}

/** Logs the first failed export of an outage, and its end; the SDK logs neither. */
function reportOutages(exporter: SpanExporter, logger: Logger | undefined): SpanExporter {
  let failing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const failed = result.code !== 0;
        if (failed && !failing)
          logger?.warn({ err: result.error, spans: spans.length }, 'cannot export spans');
        if (!failed && failing) logger?.info('exporting spans again');
        failing = failed;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  };
}

/**
 * Writes what the OpenTelemetry SDK has to say of itself to the log, at its own levels.
 * Process-wide, as that log is.
 */
export async function logTelemetrySdk(logger: Logger): Promise<void> {
  const { DiagLogLevel, diag } = await import('@opentelemetry/api');
  const log = logger.child({ component: 'telemetry SDK' });
  diag.setLogger(
    {
      error: (text) => log.error({ text }, 'from the SDK'),
      warn: (text) => log.warn({ text }, 'from the SDK'),
      info: (text) => log.info({ text }, 'from the SDK'),
      debug: (text) => log.debug({ text }, 'from the SDK'),
      verbose: (text) => log.trace({ text }, 'from the SDK'),
    },
    { logLevel: DiagLogLevel.ALL, suppressOverrideMessage: true },
  );
}

/** Headers that carry a trace: W3C tracecontext and baggage, B3 in both forms. */
const traceHeaders = [
  'traceparent',
  'tracestate',
  'baggage',
  'b3',
  'x-b3-traceid',
  'x-b3-spanid',
  'x-b3-parentspanid',
  'x-b3-sampled',
  'x-b3-flags',
];

/** The carrier for `Tracing.extract`, for requests that are read one header at a time. */
export function traceCarrier(
  header: (name: string) => string | undefined,
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(traceHeaders.map((name) => [name, header(name)]));
}
