import { create, fromBinary, type JsonObject, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt';
import { decodeInSteps } from '@tollgate/kit/grpc/decode-in-steps';
import type { Steps } from '@tollgate/kit/time';
import {
  AggregatedDiscoveryService,
  DiscoveryRequestSchema,
  type DiscoveryResponse,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import {
  type DecodedResponse,
  type DiscoveryAnswer,
  type DiscoveryMessages,
  type DiscoveryNode,
  type DiscoveryProtocol,
  isOfType,
  nodeWith,
  type ResponseIdentity,
  toErrorDetail,
  toTypeUrl,
} from './protocol.ts';

/** The complete set of resources of a response. */
export interface ResourceSet extends ResponseIdentity {
  /** Encoded messages. */
  readonly resources: readonly Uint8Array[];
}

const { typeName: serviceName, method } = AggregatedDiscoveryService;

/** Every response has all resources. */
export const stateOfTheWorld: DiscoveryProtocol<ResourceSet> = {
  path: `/${serviceName}/${method.streamAggregatedResources.name}`,
  createMessages: (typeName, node) => new SetMessages(typeName, node),
};

const { resources: resourcesField } = DiscoveryResponseSchema.field;

class SetMessages implements DiscoveryMessages<ResourceSet> {
  readonly #typeName: string;
  readonly #node: DiscoveryNode;

  constructor(typeName: string, node: DiscoveryNode) {
    this.#typeName = typeName;
    this.#node = node;
  }

  /**
   * It has no version, although a set may be active: a server that counts versions from 1 after
   * each start could take another set for it and send nothing.
   */
  subscription(): Uint8Array {
    return this.#encode({ node: nodeWith(this.#node, {}) });
  }

  answer({ version, nonce, problem }: DiscoveryAnswer, metadata?: JsonObject): Uint8Array {
    const errorDetail = toErrorDetail(problem);
    return this.#encode({
      versionInfo: version,
      responseNonce: nonce,
      ...(errorDetail && { errorDetail }),
      ...(metadata && { node: nodeWith(this.#node, metadata) }),
    });
  }

  *decode(bytes: Uint8Array): Steps<DecodedResponse<ResourceSet>> {
    const resources: Any[] = [];
    const addResource = (element: Uint8Array) => void resources.push(fromBinary(AnySchema, element));
    const elements = new Map([[resourcesField.number, addResource]]);
    return this.#validate(yield* decodeInSteps(DiscoveryResponseSchema, bytes, elements), resources);
  }

  #validate(response: DiscoveryResponse, resources: readonly Any[]): DecodedResponse<ResourceSet> {
    const { versionInfo: version, nonce, typeUrl } = response;
    const identity = { version, nonce, content: version };
    const reject = (problem: string): DecodedResponse<ResourceSet> => ({
      ...{ ok: false, identity, problem: `${problem}, not ${toTypeUrl(this.#typeName)}` },
    });
    if (!isOfType(typeUrl, this.#typeName)) return reject(`the response is of type '${typeUrl}'`);
    const invalid = resources.findIndex((resource) => !isOfType(resource.typeUrl, this.#typeName));
    if (invalid !== -1)
      return reject(`resource ${invalid} is of type '${resources[invalid]?.typeUrl ?? ''}'`);
    return { ok: true, update: { ...identity, resources: resources.map(({ value }) => value) } };
  }

  #encode(request: MessageInitShape<typeof DiscoveryRequestSchema>): Uint8Array {
    const message = create(DiscoveryRequestSchema, { ...request, typeUrl: toTypeUrl(this.#typeName) });
    return toBinary(DiscoveryRequestSchema, message);
  }
}
