import { fromBinary } from '@bufbuild/protobuf';
import { DiscoveryRequestSchema } from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { clientText, unexplained } from '../../domain/client-text.ts';
import {
  dueSotw,
  newSotwExchange,
  receiveSotw,
  type SotwExchange,
  type SotwRequest,
  sentSotw,
} from '../../domain/sotw-exchange.ts';
import { namesOnly, type Selection } from '../../domain/subscription.ts';
import { maxRejectionLength } from './ads-limits.ts';
import type { AdsProtocol, AdsRequest } from './ads-protocol.ts';
import type { ResponseCache } from './response-cache.ts';

/** Path of the call. */
export const streamAggregatedResourcesPath =
  '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';

/** Makes the state-of-the-world protocol. */
export function createSotwProtocol(
  cache: ResponseCache,
): AdsProtocol<SotwExchange, AdsRequest & SotwRequest, Selection> {
  return {
    label: 'sotw',
    newExchange: newSotwExchange,
    decode(bytes) {
      const { typeUrl, node, resourceNames, responseNonce, errorDetail } = fromBinary(
        DiscoveryRequestSchema,
        bytes,
      );
      return {
        typeUrl,
        nodeId: node?.id ?? '',
        names: resourceNames,
        nonce: responseNonce,
        message: clientText(errorDetail?.message || unexplained, maxRejectionLength),
        rejects: errorDetail !== undefined,
      };
    },
    namesOf: ({ names }) => names,
    receive: receiveSotw,
    wantedNames: ({ subscription }) => subscription && namesOnly(subscription),
    countNames: ({ subscription }) => subscription?.names.size ?? 0,
    due: dueSotw,
    sent: sentSotw,
    refusalOf: () => undefined,
    body: cache.sotwBody,
  };
}
