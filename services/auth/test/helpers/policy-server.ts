import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  AccessConfigSchema,
  type RouteRuleSchema,
  type RouteSchema,
} from '@tollgate/proto/tollgate/policy/v1/access_config';
import { type AdsServer, startAdsServer } from '@tollgate/testkit/ads-server';
import type { Test } from 'tap';

type RouteRule = Exclude<MessageInitShape<typeof RouteRuleSchema>, { $typeName: string }>;
type Route = Exclude<MessageInitShape<typeof RouteSchema>, { $typeName: string }>;

/** The AccessConfig of a namespace. */
interface Config {
  readonly name: string;
  /** Specs by name; undefined for a policy that never was valid. */
  readonly policies: Readonly<Record<string, object | undefined>>;
  readonly routes?: readonly Route[];
}

/** An HTTPRoute at one Gateway, whose rules are for every host. */
export function httpRoute(name: string, rules: readonly RouteRule[]): Route {
  const gateways = ['infra/main:80'];
  return { kind: 'HTTPRoute', name, rules: rules.map((rule) => ({ hosts: ['*'], gateways, ...rule })) };
}

interface PolicyServer extends Pick<AdsServer, 'url' | 'requests' | 'endStreams'> {
  /** Sends a set of policies; resolves when it was accepted. */
  apply(...configs: readonly Config[]): Promise<void>;
  /** Sends a set of policies; resolves with the error when it was rejected. */
  reject(...configs: readonly Config[]): Promise<string | undefined>;
}

/** A management server that sends what the xDS server makes of policies and routes. */
export async function startPolicyServer(t: Test, ...first: readonly Config[]): Promise<PolicyServer> {
  const ads = await startAdsServer(t);
  const typeUrl = `type.googleapis.com/${AccessConfigSchema.typeName}`;
  let version = 0;
  let sent: readonly string[] = [];
  const send = (configs: readonly Config[]): string => {
    version += 1;
    const resources = configs.map((config) => ({ typeUrl, name: config.name, value: encodeConfig(config) }));
    const names = configs.map(({ name }) => name);
    const removed = sent.filter((name) => !names.includes(name));
    ads.send({ versionInfo: String(version), typeUrl, resources, removed });
    sent = names;
    return String(version);
  };
  send(first);
  return {
    ...{ url: ads.url, requests: ads.requests, endStreams: ads.endStreams },
    async apply(...configs) {
      const { errorDetail } = await ads.answerTo(send(configs));
      if (errorDetail !== undefined) throw new Error(errorDetail.message);
    },
    reject: async (...configs) => (await ads.answerTo(send(configs))).errorDetail?.message,
  };
}

/** The message of a namespace. */
export function encodeConfig({ name, policies, routes = [] }: Config): Uint8Array {
  const list = Object.entries(policies).map(([policy, spec]) => ({
    ...{ name: policy, spec: spec === undefined ? '' : JSON.stringify(spec) },
  }));
  return toBinary(
    AccessConfigSchema,
    create(AccessConfigSchema, { name, policies: list, routes: [...routes] }),
  );
}
