import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import {
  type Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceDefinition,
} from '@grpc/grpc-js';
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  type DiscoveryRequest,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
  ResourceSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import type { Test } from 'tap';
import { awaitUntil } from './await-until.ts';

type Call = ServerDuplexStream<Uint8Array, Uint8Array>;

/** Response that a test has the server send. */
export interface TestResponse {
  readonly versionInfo: string;
  readonly typeUrl: string;
  readonly resources?: readonly TestResource[];
  /** Names in an incremental response. */
  readonly removed?: readonly string[];
}

interface TestResource {
  readonly typeUrl: string;
  readonly value: Uint8Array;
  /** Incremental responses need it; they have `versionInfo` as the version of each resource. */
  readonly name?: string;
}

/** A request as the server has seen it. */
interface SeenRequest extends Omit<DiscoveryRequest, '$typeName'> {
  /** Empty in a request for the state of the world. */
  readonly initialResourceVersions: Readonly<Record<string, string>>;
  /** Which stream it came on, from 1. */
  readonly stream: number;
}

/** A management server, of both variants of ADS, that does what its test says, and nothing more. */
export interface AdsServer {
  readonly url: string;
  readonly port: number;
  /** Requests of all streams, in order. */
  readonly requests: readonly SeenRequest[];
  /** Headers of each stream. */
  readonly headers: readonly Metadata[];
  /**
   * Sends a response to every open stream, and to each new one when it subscribes, until another
   * takes its place.
   */
  send(response: TestResponse): void;
  /** Sends bytes that need not be a response to every open stream. */
  sendRaw(bytes: Uint8Array): void;
  /** Ends every open stream in an orderly way. */
  endStreams(): void;
  /**
   * Resolves with the last request that answers to this version, on that stream if one is named.
   */
  answerTo(version: string, stream?: number): Promise<SeenRequest>;
  /** Cuts all connections. Idempotent; done when the test ends. */
  stop(): void;
}

/** Options of the server of a test. */
interface AdsServerOptions {
  readonly credentials?: ServerCredentials;
  /** Default: one that is free. */
  readonly port?: number;
  /** The only node that is answered; default all. */
  readonly nodeId?: string;
}

/** Starts a server on a loopback port; it is stopped when the test ends. */
export async function startAdsServer(t: Test, options: AdsServerOptions = {}): Promise<AdsServer> {
  const { credentials = ServerCredentials.createInsecure(), port: wanted = 0, nodeId } = options;
  const requests: SeenRequest[] = [];
  const headers: Metadata[] = [];
  const open = new Map<Call, Stream>();
  let current: TestResponse | undefined;

  function respond(call: Call, { stream, variant }: Stream): void {
    if (current === undefined) return;
    call.write(variant.encode(current, `${current.versionInfo}-${stream}`));
  }

  const serve = (variant: Variant) => (call: Call) => {
    headers.push(call.metadata);
    const stream = headers.length;
    call.on('error', () => undefined);
    call.on('close', () => open.delete(call));
    call.on('data', (bytes: Uint8Array) => {
      const request = variant.decode(bytes);
      requests.push({ ...request, stream });
      if (open.has(call) || (nodeId !== undefined && request.node?.id !== nodeId)) return;
      open.set(call, { stream, variant });
      respond(call, { stream, variant });
    });
  };

  // The lookup of a TXT record would keep the process alive where no name server answers.
  const server = new Server({ 'grpc.service_config_disable_resolution': 1 });
  server.addService(definition, {
    StreamAggregatedResources: serve(stateOfTheWorld),
    DeltaAggregatedResources: serve(incremental),
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`localhost:${wanted}`, credentials, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const stop = (): void => server.forceShutdown();
  t.teardown(stop);

  return {
    url: `localhost:${port}`,
    port,
    requests,
    headers,
    send(response) {
      current = response;
      for (const [call, stream] of open) respond(call, stream);
    },
    sendRaw(bytes) {
      for (const call of open.keys()) call.write(bytes);
    },
    endStreams() {
      for (const call of open.keys()) call.end();
    },
    async answerTo(version, stream) {
      const find = () =>
        requests.findLast(
          ({ responseNonce, stream: on }) =>
            responseNonce === `${version}-${on}` && (stream === undefined || on === stream),
        );
      const answer = await awaitUntil(find, { what: `an answer to ${version}` });
      if (answer === undefined) throw new TypeError('awaitUntil answers what is there');
      return answer;
    },
    stop,
  };
}

interface Stream {
  readonly stream: number;
  readonly variant: Variant;
}

/** The messages of a variant of ADS. */
interface Variant {
  decode(bytes: Uint8Array): Omit<SeenRequest, 'stream'>;
  encode(response: TestResponse, nonce: string): Uint8Array;
}

const stateOfTheWorld: Variant = {
  decode: (bytes) => ({ ...fromBinary(DiscoveryRequestSchema, bytes), initialResourceVersions: {} }),
  encode({ versionInfo, typeUrl, resources = [] }, nonce) {
    const all = resources.map((one) => toAny(one));
    const response = create(DiscoveryResponseSchema, { versionInfo, typeUrl, nonce, resources: all });
    return toBinary(DiscoveryResponseSchema, response);
  },
};

const incremental: Variant = {
  decode: (bytes) => ({
    ...create(DiscoveryRequestSchema),
    ...fromBinary(DeltaDiscoveryRequestSchema, bytes),
  }),
  encode({ versionInfo: version, typeUrl, resources = [], removed = [] }, nonce) {
    const changed = resources.map(({ name = '', ...any }) =>
      create(ResourceSchema, { name, version, resource: toAny(any) }),
    );
    const response = create(DeltaDiscoveryResponseSchema, {
      ...{ systemVersionInfo: version, typeUrl, nonce },
      ...{ resources: changed, removedResources: [...removed] },
    });
    return toBinary(DeltaDiscoveryResponseSchema, response);
  },
};

const toAny = ({ typeUrl, value }: TestResource) => create(AnySchema, { typeUrl, value });

const sameBytes = (bytes: Uint8Array): Buffer => Buffer.from(bytes);

const toMethod = (name: string): ServiceDefinition[string] => ({
  path: `/envoy.service.discovery.v3.AggregatedDiscoveryService/${name}`,
  requestStream: true,
  responseStream: true,
  requestSerialize: sameBytes,
  requestDeserialize: (bytes) => bytes,
  responseSerialize: sameBytes,
  responseDeserialize: (bytes) => bytes,
});

const definition: ServiceDefinition = {
  StreamAggregatedResources: toMethod('StreamAggregatedResources'),
  DeltaAggregatedResources: toMethod('DeltaAggregatedResources'),
};
