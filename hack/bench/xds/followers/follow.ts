import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import { DiscoveryRequestSchema } from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { readResponseHead } from './read-response.ts';

/** What a stream that follows is asked for, and tells. */
export interface FollowOptions {
  readonly address: string;
  readonly nodeId: string;
  /** Called with each response, once its ACK was written. */
  readonly onResponse: (version: string, response: Buffer) => void;
  readonly onEnd: (error: Error) => void;
}

const path = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';
const typeUrl = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';

/** Subscribes to everything on a connection of its own, as a limiter does, and acknowledges whatever comes. */
export function follow({ address, nodeId, onResponse, onEnd }: FollowOptions): void {
  const client = new Client(address, credentials.createInsecure(), {
    'grpc.max_receive_message_length': -1,
    // Else all streams of the process would share one connection.
    'grpc.use_local_subchannel_pool': 1,
  });
  const call = client.makeBidiStreamRequest<Uint8Array, Buffer>(
    path,
    (bytes) => Buffer.from(bytes),
    (bytes) => bytes,
  );
  const send = (request: MessageInitShape<typeof DiscoveryRequestSchema>): void => {
    call.write(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { ...request, typeUrl })));
  };
  call.on('data', (response: Buffer) => {
    const { version, nonce } = readResponseHead(response);
    send({ versionInfo: version, responseNonce: nonce });
    onResponse(version, response);
  });
  call.on('error', onEnd);
  call.on('end', () => onEnd(new Error('the management server ended a stream')));
  send({ node: { id: nodeId } });
}
