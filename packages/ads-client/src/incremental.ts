import { create, fromBinary, type JsonObject, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { decodeInSteps } from '@tollgate/kit/grpc/decode-in-steps';
import type { Steps } from '@tollgate/kit/time';
import {
  AggregatedDiscoveryService,
  DeltaDiscoveryRequestSchema,
  type DeltaDiscoveryResponse,
  DeltaDiscoveryResponseSchema,
  type Resource,
  ResourceSchema,
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

/** The changes in a response. */
export interface ResourceChanges extends ResponseIdentity {
  /** Resources by name that are new, or have another version. */
  readonly changed: ReadonlyMap<string, ChangedResource>;
  /** Names; the client need not have them. */
  readonly removed: readonly string[];
}

export interface ChangedResource {
  readonly version: string;
  /** The encoded message. */
  readonly value: Uint8Array;
}

const { typeName: serviceName, method } = AggregatedDiscoveryService;

/**
 * A response has only what has changed since the versions that the client has, also those of an
 * earlier stream.
 *
 * @see https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol#incremental-xds
 */
export const incremental: DiscoveryProtocol<ResourceChanges> = {
  path: `/${serviceName}/${method.deltaAggregatedResources.name}`,
  createMessages: (typeName, node) => new ChangeMessages(typeName, node),
};

const { resources: resourcesField } = DeltaDiscoveryResponseSchema.field;

class ChangeMessages implements DiscoveryMessages<ResourceChanges> {
  readonly #typeName: string;
  readonly #node: DiscoveryNode;

  constructor(typeName: string, node: DiscoveryNode) {
    this.#typeName = typeName;
    this.#node = node;
  }

  /** Without names, it is for all resources. */
  subscription(versions: ReadonlyMap<string, string>): Uint8Array {
    const initialResourceVersions = Object.fromEntries(versions);
    return this.#encode({ node: nodeWith(this.#node, {}), initialResourceVersions });
  }

  answer({ nonce, problem }: DiscoveryAnswer, metadata?: JsonObject): Uint8Array {
    const errorDetail = toErrorDetail(problem);
    return this.#encode({
      responseNonce: nonce,
      ...(errorDetail && { errorDetail }),
      ...(metadata && { node: nodeWith(this.#node, metadata) }),
    });
  }

  *decode(bytes: Uint8Array): Steps<DecodedResponse<ResourceChanges>> {
    const resources: Resource[] = [];
    const addResource = (element: Uint8Array) => void resources.push(fromBinary(ResourceSchema, element));
    const elements = new Map([[resourcesField.number, addResource]]);
    return this.#validate(yield* decodeInSteps(DeltaDiscoveryResponseSchema, bytes, elements), resources);
  }

  #validate(
    { systemVersionInfo: version, nonce, typeUrl, removedResources: removed }: DeltaDiscoveryResponse,
    resources: readonly Resource[],
  ): DecodedResponse<ResourceChanges> {
    const content = JSON.stringify([resources.map((one) => [one.name, one.version]), removed]);
    const identity = { version, nonce, content };
    const expected = toTypeUrl(this.#typeName);
    const reject = (problem: string) => ({ ok: false, identity, problem }) as const;
    if (!isOfType(typeUrl, this.#typeName))
      return reject(`the response is of type '${typeUrl}', not ${expected}`);
    const changed = new Map<string, ChangedResource>();
    for (const { name, version: own, resource } of resources) {
      if (!isOfType(resource?.typeUrl ?? '', this.#typeName))
        return reject(`${name}: the resource is of type '${resource?.typeUrl ?? ''}', not ${expected}`);
      if (changed.has(name)) return reject(`${name}: the resource is in the response twice`);
      changed.set(name, { version: own, value: resource?.value ?? new Uint8Array() });
    }
    return { ok: true, update: { ...identity, changed, removed } };
  }

  #encode(request: MessageInitShape<typeof DeltaDiscoveryRequestSchema>): Uint8Array {
    const message = create(DeltaDiscoveryRequestSchema, { ...request, typeUrl: toTypeUrl(this.#typeName) });
    return toBinary(DeltaDiscoveryRequestSchema, message);
  }
}
