import { forAdmin, type Operations } from './operation.ts';

export const adminExplainOperations: Operations = {
  'POST /admin/policies/explain': {
    id: 'adminExplainCheck',
    ...forAdmin('policies:read'),
    summary: 'Explain how a check would be decided, without counting it',
    response: 'CheckExplanation',
  },
  'GET /admin/redirect-check': {
    id: 'adminExplainRedirect',
    ...forAdmin('users:read'),
    summary: 'Explain which rule allows a `redirect_to`, or why none does',
    response: 'RedirectCheck',
  },
};
