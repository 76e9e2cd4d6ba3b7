import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import {
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';

export interface ManifestOptions {
  readonly name: string;
  readonly namespace?: string;
  readonly domain: string;
  /** Requests for each `key` of `limits`. */
  readonly limits: Readonly<Record<string, number>>;
  /** Unit of all limits. Default `Hour`; a `Year` hardly ends during a test. */
  readonly unit?: 'Hour' | 'Year';
  readonly trial?: boolean;
  readonly limiterClassName?: string;
}

/** A RateLimitConfig as JSON, which kubectl takes like YAML. */
export function manifest({
  name,
  namespace = 'default',
  domain,
  limits,
  unit = 'Hour',
  trial,
  limiterClassName,
}: ManifestOptions): string {
  return JSON.stringify({
    apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
    kind: 'RateLimitConfig',
    metadata: { name, namespace },
    spec: {
      domain,
      trial,
      limiterClassName,
      descriptors: Object.entries(limits).map(([key, requestsPerUnit]) => ({
        key,
        rateLimit: { unit, requestsPerUnit },
      })),
    },
  });
}

interface ShownCondition {
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** The status of a RateLimitConfig as kubectl has it. */
export interface ShownStatus {
  readonly observedGeneration: number | undefined;
  readonly version: string | undefined;
  readonly rules: number | undefined;
  readonly generation: number;
  readonly accepted: ShownCondition | undefined;
  readonly programmed: ShownCondition | undefined;
  readonly matched: ShownCondition | undefined;
}

/** The path of a RateLimitConfig at the API server, or of all of a namespace. */
export function limitsPath(namespace: string, name = ''): string {
  return `/apis/ratelimit.tollgate.dev/v1alpha1/namespaces/${namespace}/ratelimitconfigs/${name}`;
}

async function readStatus(kube: KubeApiserver, name: string, namespace = 'default'): Promise<ShownStatus> {
  // Parsed boundary: the shape is that of the CRD.
  const { metadata, status = {} } = (await kube.get(limitsPath(namespace, name))) as {
    metadata: { generation: number };
    status?: Partial<ShownStatus> & { conditions?: (ShownCondition & { type: string })[] };
  };
  const condition = (type: string) => status.conditions?.find((candidate) => candidate.type === type);
  return {
    generation: metadata.generation,
    observedGeneration: status.observedGeneration,
    version: status.version,
    rules: status.rules,
    accepted: condition('Accepted'),
    programmed: condition('Programmed'),
    matched: condition('Matched'),
  };
}

/** Whether every limiter enforces the object. */
export function programmed(status: ShownStatus): boolean {
  return status.programmed?.status === 'True';
}

/** Waits for a status. */
export function statusWhen(
  kube: KubeApiserver,
  name: string,
  fits: (status: ShownStatus) => boolean,
  namespace?: string,
): Promise<ShownStatus> {
  return awaitUntil(
    async () => {
      const status = await readStatus(kube, name, namespace);
      if (!fits(status)) throw new Error(`it is ${JSON.stringify(status)}`);
      return status;
    },
    { what: `the status of ${name}`, everyMs: 100 },
  );
}

/** A limiter that rejects every response with the same message. */
export interface NackingClient {
  readonly received: number;
  close(): void;
}

const path = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';
const typeUrl = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';

/** Connects to an xDS server and rejects all of its responses. */
export function connectNackingClient(
  address: string,
  nodeId: string,
  message: string,
  metadata: Readonly<Record<string, string>> = {},
): NackingClient {
  const client = new Client(address, credentials.createInsecure());
  let received = 0;
  const stream = client.makeBidiStreamRequest(
    path,
    (bytes: Uint8Array) => Buffer.from(bytes),
    (bytes: Buffer) => fromBinary(DiscoveryResponseSchema, bytes),
  );
  const send = (init: Parameters<typeof create<typeof DiscoveryRequestSchema>>[1]) =>
    stream.write(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, init)));
  stream.on('data', ({ nonce }: { nonce: string }) => {
    received += 1;
    send({ typeUrl, responseNonce: nonce, errorDetail: { code: 0, message } });
  });
  stream.on('error', () => {});
  send({ typeUrl, node: { id: nodeId, metadata: { ...metadata } } });
  return {
    get received() {
      return received;
    },
    close() {
      // A client that is closed lets its streams go on.
      stream.cancel();
      client.close();
    },
  };
}
