import { once } from 'node:events';
import { createServer } from 'node:http';
import type t from 'tap';

/** An OTLP attribute. */
export interface OtlpAttribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number; readonly boolValue?: boolean };
}

/** A request to the collector. */
export interface OtlpRequest {
  readonly path: string;
  readonly contentType: string;
  /** Empty if it is not JSON. */
  readonly body: {
    readonly resourceSpans?: readonly {
      readonly resource: { readonly attributes: readonly OtlpAttribute[] };
      readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
    }[];
    readonly resourceMetrics?: readonly {
      readonly resource: { readonly attributes: readonly OtlpAttribute[] };
      readonly scopeMetrics: readonly { readonly metrics: readonly OtlpMetric[] }[];
    }[];
  };
}

/** An OTLP span. */
interface OtlpSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes: readonly OtlpAttribute[];
  readonly status: { readonly code?: number };
}

/** An OTLP metric. */
interface OtlpMetric {
  readonly name: string;
  readonly histogram?: { readonly dataPoints: readonly { readonly count: number }[] };
}

/** Starts an OTLP/HTTP collector, and configures the exporters of this process. */
export async function startCollector(test: Pick<typeof t, 'teardown'>): Promise<readonly OtlpRequest[]> {
  const requests: OtlpRequest[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer); // a request of HTTP consists of them
    const contentType = request.headers['content-type'] ?? '';
    const text = Buffer.concat(chunks).toString();
    // Parsed boundary: OTLP.
    const body = contentType.includes('json') ? (JSON.parse(text) as OtlpRequest['body']) : {};
    requests.push({ path: request.url ?? '', contentType, body });
    response.writeHead(200).end(contentType.includes('json') ? '{}' : '');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  test.teardown(() => delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT);
  return requests;
}

/** Attributes as an object. */
export function attributesOf(
  attributes: readonly OtlpAttribute[] | undefined,
): Record<string, string | number | boolean | undefined> {
  return Object.fromEntries(
    (attributes ?? []).map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? value.boolValue]),
  );
}
