import { html } from '@tollgate/kit/html';
import type { Settings } from '../config/settings.ts';
import { renderPage } from '../http/html-page.ts';
import { choosePageTexts } from './texts/texts.ts';

// Pages on hosts of applications, which external authorization shows.

type PageSettings = Parameters<typeof renderPage>[0] &
  Pick<Settings, 'mailerLanguages' | 'mailerDefaultLanguage'>;

type Headers = Readonly<Record<string, string>>;

/** Asks whether to sign out. `action` is the path of the form. */
export function renderSignOut(action: string, headers: Headers, settings: PageSettings) {
  const { language, texts } = choosePageTexts({ headers, query: {} }, settings);
  return renderPage(settings, {
    ...{ language, title: texts.logoutTitle, hasOwnStyle: true },
    // The application sends the browser there afterwards.
    formTargets: [new URL(settings.apiExternalUrl).origin],
    content: html`<form method="post" action="${action}"><button>${texts.signOut}</button></form>
<p class="after"><a href="/">${texts.staySignedIn}</a></p>`,
  });
}

/** Says that a sign-in did not work. `url` is the page of the application. */
export function renderFailedSignIn(url: string, headers: Headers, settings: PageSettings) {
  const { language, texts } = choosePageTexts({ headers, query: {} }, settings);
  return renderPage(settings, {
    ...{ language, title: texts.brokenLink, hasOwnStyle: true, hasSecretUrl: true },
    content: html`<p>${texts.returnText}</p>
<p class="after"><a class="button" href="${url}">${texts.tryAgain}</a></p>`,
  });
}
