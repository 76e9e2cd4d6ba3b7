import { html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import { copyable, details } from '../../ui/text.ts';
import { clientName, clientPath, type OAuthClient } from './client.ts';

/** The page with a new secret. It is the response to the form, so that no URL leads to it. */
export function showSecret(client: OAuthClient): View {
  const { client_id: id, client_secret: secret } = client;
  return {
    title: `Secret of ${clientName(client)}`,
    content: html`<section class="card stack"><p>Copy the secret now: it is not shown again.</p>
${details({
  'Client id': copyable(id),
  'Client secret': secret === undefined ? undefined : copyable(secret),
})}
<div class="actions"><a class="button primary" href="${clientPath(client)}">I have copied it</a></div></section>`,
  };
}
