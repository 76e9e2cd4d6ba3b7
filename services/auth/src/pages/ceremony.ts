import { createHash } from 'node:crypto';
import { type Html, html, trustedHtml } from '@tollgate/kit/html';
import type { Settings } from '../config/settings.ts';
import type { IssuedPasskeyChallenge, PasskeyResponse } from '../passkeys/challenges.ts';
import { form } from './forms.ts';
import type { View } from './page.ts';
import type { Visit } from './visit.ts';

/** Whether passkeys work on the pages: credentials are bound to origins. */
export function offersPasskeys({ passkeyEnabled, webAuthnRpOrigins, apiExternalUrl }: Settings): boolean {
  return passkeyEnabled && webAuthnRpOrigins.includes(new URL(apiExternalUrl).origin);
}

/** Reads the form that the script has sent. */
export function readPasskeyResponse({ form: fields }: Visit): PasskeyResponse {
  const { challenge_id: challengeId = '', credential = '' } = fields;
  return { challengeId, credential: parseJson(credential) };
}

/** Undefined for another text, which is rejected as a credential. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The functions that the script calls. */
const ceremonies = {
  get: { parse: 'parseRequestOptionsFromJSON', run: 'get' },
  create: { parse: 'parseCreationOptionsFromJSON', run: 'create' },
} as const;

/**
 * Asks the browser for a passkey, and sends the form with it. The challenge is in the page, so that
 * the policy need not allow requests of scripts.
 *
 * @see https://www.w3.org/TR/webauthn-3/#sctn-parseRequestOptionsFromJSON
 */
function makeScript({ parse, run }: (typeof ceremonies)[keyof typeof ceremonies]): string {
  return `
const [form] = document.forms;
const failure = document.getElementById('failure');
async function askForPasskey() {
  failure.hidden = true;
  try {
    const options = JSON.parse(form.elements.options.value);
    const publicKey = PublicKeyCredential.${parse}(options);
    form.elements.credential.value = JSON.stringify(await navigator.credentials.${run}({ publicKey }));
    form.submit();
  } catch {
    failure.hidden = false;
  }
}
form.addEventListener('submit', (event) => {
  event.preventDefault();
  askForPasskey();
});
askForPasskey();
`;
}

function toHashed(script: string): { readonly script: string; readonly hash: string } {
  return { script, hash: createHash('sha256').update(script).digest('base64') };
}

const scripts = {
  get: toHashed(makeScript(ceremonies.get)),
  create: toHashed(makeScript(ceremonies.create)),
};

/** A page whose script asks for a passkey at once, and again with its button. */
interface Ceremony {
  readonly kind: keyof typeof ceremonies;
  readonly challenge: Pick<IssuedPasskeyChallenge, 'id' | 'options'>;
  /** Also the button. */
  readonly title: string;
  readonly text: string;
  readonly failure: string;
  /** Target of the form with the response. */
  readonly action: string;
  readonly after: Html;
}

export function ceremonyView(visit: Visit, ceremony: Ceremony): View {
  const { title, text, challenge, failure, action, after } = ceremony;
  const { script, hash } = scripts[ceremony.kind];
  const content = html`<input type="hidden" name="challenge_id" value="${challenge.id}">
<input type="hidden" name="options" value="${JSON.stringify(challenge.options)}" disabled>
<input type="hidden" name="credential">
<button>${title}</button>`;
  return {
    title,
    scriptHashes: [hash],
    content: html`<noscript><p class="problem">${visit.texts.passkeyNeedsScript}</p></noscript>
<p>${text}</p>
<div class="summary" id="failure" role="alert" hidden><p>${failure}</p></div>
${form(visit, { action, content })}
${after}
<script>${trustedHtml(script)}</script>`,
  };
}
