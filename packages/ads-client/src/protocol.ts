import type { JsonObject } from '@bufbuild/protobuf';
import type { Steps } from '@tollgate/kit/time';

export interface DiscoveryNode {
  readonly id: string;
  readonly userAgentName: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Members of every response. */
export interface ResponseIdentity {
  readonly version: string;
  readonly nonce: string;
  /** Equal for responses with the same resources in the same versions. */
  readonly content: string;
}

/** An ACK, or a NACK. */
export interface DiscoveryAnswer {
  /** The version in force; empty if there is none. */
  readonly version: string;
  /** Nonce of the response. */
  readonly nonce: string;
  /** Why the response is rejected; undefined if it is accepted. */
  readonly problem?: string;
}

/** A response, or the reason to reject it. */
export type DecodedResponse<Update extends ResponseIdentity> =
  | { readonly ok: true; readonly update: Update }
  | { readonly ok: false; readonly identity: ResponseIdentity; readonly problem: string };

/** A variant of ADS: state of the world, or incremental. */
export interface DiscoveryProtocol<Update extends ResponseIdentity> {
  /** Path of the method. */
  readonly path: string;
  /** @param typeName full name of the message that resources are */
  createMessages(typeName: string, node: DiscoveryNode): DiscoveryMessages<Update>;
}

/** The messages of ADS about resources of one type. */
export interface DiscoveryMessages<Update extends ResponseIdentity> {
  /**
   * The first request of a stream, for all resources of the type.
   *
   * @param versions of resources in force, by name
   */
  subscription(versions: ReadonlyMap<string, string>): Uint8Array;
  /**
   * Accepts or rejects a response. With metadata of the node it is a repeated answer: servers that
   * do not know the metadata see one without a change.
   */
  answer(answer: DiscoveryAnswer, metadata?: JsonObject): Uint8Array;
  /**
   * Decodes a response in steps, because it may have tens of thousands of resources.
   *
   * @throws Error when the bytes are not a response, which leaves no nonce for a reply.
   */
  decode(bytes: Uint8Array): Steps<DecodedResponse<Update>>;
}

/** google.rpc.Status of a NACK. */
export function toErrorDetail(problem: string | undefined) {
  // google.rpc.Code INVALID_ARGUMENT.
  return problem === undefined ? undefined : { code: 3, message: problem };
}

/** The node of a request, with more metadata. */
export function nodeWith({ id, userAgentName, metadata }: DiscoveryNode, more: JsonObject) {
  return { id, userAgentName, metadata: { ...metadata, ...more } };
}

export const toTypeUrl = (typeName: string): string => `type.googleapis.com/${typeName}`;

/** Ignores the prefix, which only says where the type is described. */
export function isOfType(typeUrl: string, typeName: string): boolean {
  return typeUrl.slice(typeUrl.lastIndexOf('/') + 1) === typeName;
}
