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
  type DiscoveryRequest,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import type { Test } from 'tap';
import { awaitUntil } from './await-until.ts';

const path = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';

type Call = ServerDuplexStream<Uint8Array, Uint8Array>;

/** Response that a test has the server send. */
export interface TestResponse {
  readonly versionInfo: string;
  readonly typeUrl: string;
  readonly resources?: readonly { readonly typeUrl: string; readonly value: Uint8Array }[];
}

/** A request as the server has seen it. */
interface SeenRequest extends DiscoveryRequest {
  /** Which stream it came on, from 1. */
  readonly stream: number;
}

/** A management server that does what its test says, and nothing more. */
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
  const open = new Map<Call, number>();
  let current: TestResponse | undefined;

  function respond(call: Call, stream: number): void {
    if (current === undefined) return;
    const nonce = `${current.versionInfo}-${stream}`;
    const resources = current.resources?.map((any) => create(AnySchema, { ...any })) ?? [];
    const response = create(DiscoveryResponseSchema, { ...current, resources, nonce });
    call.write(toBinary(DiscoveryResponseSchema, response));
  }

  function serve(call: Call): void {
    headers.push(call.metadata);
    const stream = headers.length;
    call.on('error', () => undefined);
    call.on('close', () => open.delete(call));
    call.on('data', (bytes: Uint8Array) => {
      const request = fromBinary(DiscoveryRequestSchema, bytes);
      requests.push({ ...request, stream });
      if (open.has(call) || (nodeId !== undefined && request.node?.id !== nodeId)) return;
      open.set(call, stream);
      respond(call, stream);
    });
  }

  // The lookup of a TXT record would keep the process alive where no name server answers.
  const server = new Server({ 'grpc.service_config_disable_resolution': 1 });
  server.addService(definition, { StreamAggregatedResources: serve });
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

const sameBytes = (bytes: Uint8Array): Buffer => Buffer.from(bytes);

const definition: ServiceDefinition = {
  StreamAggregatedResources: {
    path,
    requestStream: true,
    responseStream: true,
    requestSerialize: sameBytes,
    requestDeserialize: (bytes) => bytes,
    responseSerialize: sameBytes,
    responseDeserialize: (bytes) => bytes,
  },
};
