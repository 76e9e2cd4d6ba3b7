import { policyDomainPrefix } from '@tollgate/rules/rule-document';

/** The API that an AccessPolicy belongs to. */
export const policyGroup = 'policy.tollgate.dev';

/** The kind of an AccessPolicy. */
export const policyKind = 'AccessPolicy';

/** `apiVersion` of every AccessPolicy. */
export const policyApiVersion = `${policyGroup}/v1alpha1`;

export const manifestFields: readonly string[] = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];

interface PolicyName {
  readonly namespace: string;
  readonly name: string;
}

/** Domain of the limits of a policy. */
export function policyDomain({ namespace, name }: PolicyName): string {
  return `${policyDomainPrefix}${namespace}/${name}`;
}

/** The policy whose limits have this domain; undefined for other domains. */
export function parsePolicyDomain(domain: string): PolicyName | undefined {
  if (!domain.startsWith(policyDomainPrefix)) return undefined;
  const [namespace = '', name = ''] = domain.slice(policyDomainPrefix.length).split('/');
  return { namespace, name };
}
