import { fromBinary } from '@bufbuild/protobuf';
import { DeltaDiscoveryRequestSchema } from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { clientText, unexplained } from '../../domain/client-text.ts';
import {
  type DeltaExchange,
  type DeltaReply,
  type DeltaRequest,
  dueDelta,
  newDeltaExchange,
  receiveDelta,
  refusalOf,
  sentDelta,
} from '../../domain/delta-exchange.ts';
import { namesOnly } from '../../domain/subscription.ts';
import { maxRejectionLength } from './ads-limits.ts';
import type { AdsProtocol, AdsRequest } from './ads-protocol.ts';
import type { ResponseCache } from './response-cache.ts';

/** Path of the call. */
export const deltaAggregatedResourcesPath =
  '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources';

/** Makes the incremental protocol. */
export function createDeltaProtocol(
  cache: ResponseCache,
): AdsProtocol<DeltaExchange, AdsRequest & DeltaRequest, DeltaReply> {
  return {
    label: 'delta',
    newExchange: newDeltaExchange,
    decode(bytes) {
      const request = fromBinary(DeltaDiscoveryRequestSchema, bytes);
      return {
        typeUrl: request.typeUrl,
        nodeId: request.node?.id ?? '',
        subscribe: request.resourceNamesSubscribe,
        unsubscribe: request.resourceNamesUnsubscribe,
        initialVersions: new Map(Object.entries(request.initialResourceVersions)),
        nonce: request.responseNonce,
        message: clientText(request.errorDetail?.message || unexplained, maxRejectionLength),
        rejects: request.errorDetail !== undefined,
      };
    },
    namesOf: ({ subscribe, unsubscribe }) => [...subscribe, ...unsubscribe],
    receive: receiveDelta,
    wantedNames: ({ subscription }) => subscription && namesOnly(subscription),
    countNames: ({ subscription, owed }) => (subscription?.names.size ?? 0) + owed.size,
    due: (exchange, snapshot) => dueDelta(exchange, snapshot, cache.diff),
    sent: sentDelta,
    refusalOf,
    body: cache.deltaBody,
  };
}
