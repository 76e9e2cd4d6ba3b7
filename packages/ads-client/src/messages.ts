import { create, fromBinary, type JsonObject, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt';
import { decodeInSteps } from '@tollgate/kit/grpc/decode-in-steps';
import type { Steps } from '@tollgate/kit/time';
import {
  DiscoveryRequestSchema,
  type DiscoveryResponse,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';

export interface DiscoveryNode {
  readonly id: string;
  readonly userAgentName: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The complete set of resources of a response. */
export interface ResourceSet {
  readonly version: string;
  readonly nonce: string;
  /** Encoded messages. */
  readonly resources: readonly Uint8Array[];
}

/** An ACK, or a NACK. */
export interface DiscoveryAnswer {
  /** The active one; empty if there is none. */
  readonly version: string;
  /** Nonce of the response. */
  readonly nonce: string;
  /** Why the response is rejected; undefined if it is accepted. */
  readonly problem?: string;
}

/** A response, or the reason to reject it. */
type DecodedResponse =
  | { readonly ok: true; readonly set: ResourceSet }
  | { readonly ok: false; readonly version: string; readonly nonce: string; readonly problem: string };

/** google.rpc.Code INVALID_ARGUMENT. */
const invalidArgument = 3;

const { resources: resourcesField } = DiscoveryResponseSchema.field;

/** The messages of ADS, state of the world, about resources of one type. */
export class DiscoveryMessages {
  readonly #typeName: string;
  readonly #typeUrl: string;
  readonly #node: DiscoveryNode;

  /** @param typeName full name of the message that resources are */
  constructor(typeName: string, node: DiscoveryNode) {
    this.#typeName = typeName;
    this.#typeUrl = `type.googleapis.com/${typeName}`;
    this.#node = node;
  }

  /**
   * The first request of a stream, for all resources of the type. It has no version, although a set
   * may be active: a server that counts versions from 1 after each start could take another set for
   * it and send nothing.
   */
  subscription(): Uint8Array {
    return this.#encode({ node: this.#nodeWith({}) });
  }

  /**
   * Accepts or rejects a response. With metadata of the node it is a repeated answer: servers that
   * do not know the metadata see one without a change.
   */
  answer({ version, nonce, problem }: DiscoveryAnswer, metadata?: JsonObject): Uint8Array {
    return this.#encode({
      versionInfo: version,
      responseNonce: nonce,
      ...(problem !== undefined && { errorDetail: { code: invalidArgument, message: problem } }),
      ...(metadata && { node: this.#nodeWith(metadata) }),
    });
  }

  /**
   * Decodes a response in steps, because it may have tens of thousands of resources.
   *
   * @throws Error when the bytes are not a DiscoveryResponse, which leaves no nonce for a reply.
   */
  *decode(bytes: Uint8Array): Steps<DecodedResponse> {
    const resources: Any[] = [];
    const addResource = (element: Uint8Array) => void resources.push(fromBinary(AnySchema, element));
    const elements = new Map([[resourcesField.number, addResource]]);
    return this.#validate(yield* decodeInSteps(DiscoveryResponseSchema, bytes, elements), resources);
  }

  #validate(response: DiscoveryResponse, resources: readonly Any[]): DecodedResponse {
    const { versionInfo: version, nonce, typeUrl } = response;
    const reject = (problem: string): DecodedResponse => ({
      ok: false,
      version,
      nonce,
      problem: `${problem}, not ${this.#typeUrl}`,
    });
    if (!this.#isExpected(typeUrl)) return reject(`the response is of type '${typeUrl}'`);
    const invalid = resources.findIndex((resource) => !this.#isExpected(resource.typeUrl));
    if (invalid !== -1)
      return reject(`resource ${invalid} is of type '${resources[invalid]?.typeUrl ?? ''}'`);
    return { ok: true, set: { version, nonce, resources: resources.map(({ value }) => value) } };
  }

  /** Ignores the prefix, which only says where the type is described. */
  #isExpected(typeUrl: string): boolean {
    return typeUrl.slice(typeUrl.lastIndexOf('/') + 1) === this.#typeName;
  }

  #nodeWith(more: JsonObject) {
    const { id, userAgentName, metadata } = this.#node;
    return { id, userAgentName, metadata: { ...metadata, ...more } };
  }

  #encode(request: MessageInitShape<typeof DiscoveryRequestSchema>): Uint8Array {
    const message = create(DiscoveryRequestSchema, { ...request, typeUrl: this.#typeUrl });
    return toBinary(DiscoveryRequestSchema, message);
  }
}
