import type { ChannelCredentials } from '@grpc/grpc-js';
import { type AdsStream, type AdsStreamOptions, openAdsStream } from './ads-stream.ts';
import { type DiscoveryNode, subscription } from './discovery.ts';
import type { EndedStream } from './reconnect-pauses.ts';

/** What following a stream takes. */
export interface FollowStreamDeps {
  /** Asked for when the stream is opened. */
  readonly credentials: () => ChannelCredentials;
  /** Answers a response with the request to send. */
  readonly take: (response: Uint8Array) => Promise<Uint8Array>;
  /** Called with the first response, once that was taken. */
  readonly onDelivered: () => void;
  /** Cancels the stream. */
  readonly signal: AbortSignal;
}

/** How a stream ended, and why. */
export interface FollowedStream extends EndedStream {
  /** Undefined when the server ended it in an orderly way. */
  readonly error?: unknown;
}

/** Subscribes on a stream of its own and follows it to its end. That is always an expected one: never rejects. */
export async function followStream(
  options: AdsStreamOptions,
  node: DiscoveryNode,
  { credentials, take, onDelivered, signal }: FollowStreamDeps,
): Promise<FollowedStream> {
  let delivered = false;
  let stream: AdsStream | undefined;
  const end = (): Omit<FollowedStream, 'error'> => ({ connected: stream?.connected() ?? false, delivered });
  try {
    stream = openAdsStream(options, credentials());
    signal.addEventListener('abort', stream.close, { once: true });
    stream.send(subscription(node));
    for await (const response of stream.responses) {
      const reply = await take(response);
      if (!delivered) onDelivered();
      delivered = true;
      stream.send(reply);
    }
    return end();
  } catch (error) {
    return { ...end(), error };
  } finally {
    if (stream !== undefined) {
      signal.removeEventListener('abort', stream.close);
      stream.close();
    }
  }
}
