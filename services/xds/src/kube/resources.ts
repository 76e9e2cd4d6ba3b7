import { policyApiVersion, policyGroup, policyKind } from '@tollgate/policies/definition/resource-shape';

/** Says what the server needs objects of a kind for. Without the privilege, this is missing. */
export type Purpose =
  | 'limits'
  | 'access policies'
  | 'enforcement'
  | 'certificates'
  | 'events'
  | 'replicas'
  | 'admission';

/** A kind of objects in the API. */
export interface KubeResource {
  /** Empty for the core group. */
  readonly group: string;
  /** `group/version`, as in manifests. */
  readonly apiVersion: string;
  /** Name in paths and RBAC rules: `ratelimitconfigs`. */
  readonly plural: string;
  readonly kind: string;
  readonly purpose: Purpose;
}

export const rateLimitConfigs: KubeResource = {
  group: 'ratelimit.tollgate.dev',
  apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
  plural: 'ratelimitconfigs',
  kind: 'RateLimitConfig',
  purpose: 'limits',
};

export const accessPolicies: KubeResource = {
  group: policyGroup,
  apiVersion: policyApiVersion,
  plural: 'accesspolicies',
  kind: policyKind,
  purpose: 'access policies',
};

const gatewayApi = { group: 'gateway.networking.k8s.io', apiVersion: 'gateway.networking.k8s.io/v1' };

const ofTargets = { ...gatewayApi, purpose: 'access policies' } as const;

export const gateways: KubeResource = { ...ofTargets, plural: 'gateways', kind: 'Gateway' };
export const httpRoutes: KubeResource = { ...ofTargets, plural: 'httproutes', kind: 'HTTPRoute' };
export const grpcRoutes: KubeResource = { ...ofTargets, plural: 'grpcroutes', kind: 'GRPCRoute' };

/** Says which controller a Gateway has. */
export const gatewayClasses: KubeResource = {
  ...gatewayApi,
  plural: 'gatewayclasses',
  kind: 'GatewayClass',
  purpose: 'enforcement',
};

/** Gives Gateways and routes of Envoy Gateway their external authorization. */
export const securityPolicies: KubeResource = {
  group: 'gateway.envoyproxy.io',
  apiVersion: 'gateway.envoyproxy.io/v1alpha1',
  plural: 'securitypolicies',
  kind: 'SecurityPolicy',
  purpose: 'enforcement',
};

/** Listeners select routes by labels of namespaces. */
export const namespaces: KubeResource = {
  group: '',
  apiVersion: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
  purpose: 'access policies',
};

/** Elects the replica that writes statuses. */
export const leases: KubeResource = {
  group: 'coordination.k8s.io',
  apiVersion: 'coordination.k8s.io/v1',
  plural: 'leases',
  kind: 'Lease',
  purpose: 'replicas',
};

/** Holds the limiter reports of the replicas. */
export const configMaps: KubeResource = {
  group: '',
  apiVersion: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  purpose: 'replicas',
};

/** Hold certificates. */
export const secrets: KubeResource = {
  group: '',
  apiVersion: 'v1',
  plural: 'secrets',
  kind: 'Secret',
  purpose: 'certificates',
};

export const events: KubeResource = {
  group: 'events.k8s.io',
  apiVersion: 'events.k8s.io/v1',
  plural: 'events',
  kind: 'Event',
  purpose: 'events',
};

/** Makes the API server call the webhook. */
export const validatingWebhookConfigurations: KubeResource = {
  group: 'admissionregistration.k8s.io',
  apiVersion: 'admissionregistration.k8s.io/v1',
  plural: 'validatingwebhookconfigurations',
  kind: 'ValidatingWebhookConfiguration',
  purpose: 'admission',
};

export interface ObjectName {
  /** Empty for objects of the cluster. */
  readonly namespace: string;
  readonly name: string;
}
