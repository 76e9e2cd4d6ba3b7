import { policyApiVersion, policyGroup, policyKind } from '@tollgate/policies/definition/resource-shape';

/** A kind of objects in the API. */
export interface KubeResource {
  /** Empty for the core group. */
  readonly group: string;
  /** `group/version`, as in manifests. */
  readonly apiVersion: string;
  /** Name in paths and RBAC rules: `ratelimitconfigs`. */
  readonly plural: string;
  readonly kind: string;
}

export const rateLimitConfigs: KubeResource = {
  group: 'ratelimit.tollgate.dev',
  apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
  plural: 'ratelimitconfigs',
  kind: 'RateLimitConfig',
};

export const accessPolicies: KubeResource = {
  group: policyGroup,
  apiVersion: policyApiVersion,
  plural: 'accesspolicies',
  kind: policyKind,
};

const gatewayApi = { group: 'gateway.networking.k8s.io', apiVersion: 'gateway.networking.k8s.io/v1' };

export const gateways: KubeResource = { ...gatewayApi, plural: 'gateways', kind: 'Gateway' };
export const httpRoutes: KubeResource = { ...gatewayApi, plural: 'httproutes', kind: 'HTTPRoute' };
export const grpcRoutes: KubeResource = { ...gatewayApi, plural: 'grpcroutes', kind: 'GRPCRoute' };

/** Says which controller a Gateway has. */
export const gatewayClasses: KubeResource = { ...gatewayApi, plural: 'gatewayclasses', kind: 'GatewayClass' };

/** Gives Gateways and routes of Envoy Gateway their external authorization. */
export const securityPolicies: KubeResource = {
  group: 'gateway.envoyproxy.io',
  apiVersion: 'gateway.envoyproxy.io/v1alpha1',
  plural: 'securitypolicies',
  kind: 'SecurityPolicy',
};

/** Listeners select routes by labels of namespaces. */
export const namespaces: KubeResource = {
  group: '',
  apiVersion: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
};

/** Elects the replica that writes statuses. */
export const leases: KubeResource = {
  group: 'coordination.k8s.io',
  apiVersion: 'coordination.k8s.io/v1',
  plural: 'leases',
  kind: 'Lease',
};

/** Holds the limiter reports of the replicas. */
export const configMaps: KubeResource = {
  group: '',
  apiVersion: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
};

/** Hold certificates. */
export const secrets: KubeResource = { group: '', apiVersion: 'v1', plural: 'secrets', kind: 'Secret' };

export const events: KubeResource = {
  group: 'events.k8s.io',
  apiVersion: 'events.k8s.io/v1',
  plural: 'events',
  kind: 'Event',
};

/** Makes the API server call the webhook. */
export const validatingWebhookConfigurations: KubeResource = {
  group: 'admissionregistration.k8s.io',
  apiVersion: 'admissionregistration.k8s.io/v1',
  plural: 'validatingwebhookconfigurations',
  kind: 'ValidatingWebhookConfiguration',
};

export interface ObjectName {
  /** Empty for objects of the cluster. */
  readonly namespace: string;
  readonly name: string;
}
