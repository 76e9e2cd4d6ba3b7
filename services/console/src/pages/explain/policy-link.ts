import { type Html, html } from '@tollgate/kit/html';
import type { Visit } from '../../http/visit.ts';
import { objectPath } from '../policies/page.ts';

/** The page of an access policy by `namespace/name`, for a person who may see it. */
export function policyLink(visit: Visit, policy: string): Html {
  const [namespace = '', name] = policy.split('/');
  if (name === undefined || visit.context.settings.xdsUrl === '' || !visit.can('policies'))
    return html`${policy}`;
  return html`<a href="${objectPath({ kind: 'AccessPolicy', namespace, name })}">${policy}</a>`;
}
