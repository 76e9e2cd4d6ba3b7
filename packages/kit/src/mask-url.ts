// Greedy to the last `@` before a space: an unescaped `@`, `/` or `,` in a password must not leave half of it readable.
// Three slashes mean no authority (`file:///…/@scope/…` in a stack), hence nothing to hide.
const credentialsAfterScheme = /([a-z][a-z0-9+.-]*:\/\/)(?!\/)\S*@/gi;
const bareCredentials = /^[^\s/]*:(?!\/\/)\S*@/;

/**
 * Hides the user and password of every URL in a text: `redis://u:p@host` becomes `redis://***@host`.
 * A text that is `user:password@host` without a scheme is masked the same way. Hides too much rather than too little.
 */
export function maskUrl(text: string): string {
  return text.replace(credentialsAfterScheme, '$1***@').replace(bareCredentials, '***@');
}
