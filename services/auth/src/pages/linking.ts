import { html } from '@tollgate/kit/html';
import type { AddRoutes } from '../http/api.ts';
import { sendPage } from '../http/html-page.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { openBrowserSecret } from '../providers/flow.ts';
import { findPendingLink } from '../providers/linking.ts';
import { findConnection, readQuery } from '../providers/routes.ts';
import type { PagesContext } from './context.ts';
import { sendErrorPage } from './error-page.ts';
import { providerLabel } from './providers.ts';
import { choosePageTexts } from './texts/texts.ts';

/**
 * `/pages/link`: names the account that an identity will be linked to. Only its button continues,
 * with a ticket of this browser.
 */
export const addLinkingRoute: AddRoutes<PagesContext> = (api, context) => {
  const { settings } = context;
  const options = {
    schema: { hide: true },
    exposeHeadRoute: false,
    errorHandler: sendErrorPage(context),
  };
  api.get('/pages/link', options, async (request, reply) => {
    const query = readQuery(request);
    const connection = await findConnection(context, query.get('provider') ?? '');
    const { isFormPost } = connection;
    const browserSecret = openBrowserSecret(request, reply, { settings, isFormPost });
    const metadata = requestMetadata(request, context);
    const { user, url } = await findPendingLink(context, { query, browserSecret }, metadata);
    const { language, texts } = choosePageTexts(request, settings);
    const provider = providerLabel(connection.name);
    return sendPage(reply, settings, {
      language,
      title: texts.connect(provider),
      hasSecretUrl: true,
      // A link rather than a form: `form-action` would have to allow all providers.
      content: html`<p>${texts.linkTo(provider, user.email || user.phone || texts.guestAccount)}</p>
<p>${texts.linkWarning}</p>
<p><a class="button" href="${url}">${texts.connect(provider)}</a></p>`,
    });
  });
};
