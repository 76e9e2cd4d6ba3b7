import type { IssuerDefinition } from '@tollgate/policies/routes-file/issuer';

/** All that the keys of an issuer depend on. */
export type KeySource = Pick<
  IssuerDefinition,
  'name' | 'issuer' | 'discovery' | 'jwksUri' | 'caFile' | 'isKubernetes'
>;

export function keySource(definition: IssuerDefinition): KeySource {
  const { name, issuer, discovery, jwksUri, caFile, isKubernetes } = definition;
  return { name, issuer, discovery, jwksUri, caFile, isKubernetes };
}

/** Stands for the tenant in an issuer, as in the metadata of Microsoft Entra. */
export const tenantPlaceholder = '{tenantid}';
