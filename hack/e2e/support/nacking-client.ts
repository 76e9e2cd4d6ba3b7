import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import {
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';

/** A limiter that refuses everything it is sent, with the same words. */
export interface NackingClient {
  /** Responses received so far. */
  readonly received: number;
  close(): void;
}

const path = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';
const typeUrl = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';

/** Connects to a management server and rejects all of its responses. */
export function connectNackingClient(address: string, nodeId: string, message: string): NackingClient {
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
  send({ typeUrl, node: { id: nodeId } });
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
