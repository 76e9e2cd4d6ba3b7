import { type Html, html } from '@tollgate/kit/html';
import type { Problem } from './problems.ts';
import type { PageTexts } from './texts/en.ts';
import { formTokenField, type Visit } from './visit.ts';

interface Form {
  /** Path of the target; the page itself when absent. */
  readonly action: string;
  readonly content: Html;
}

/** A form with the token of the browser. */
export function form(visit: Visit, { action, content }: Form): Html {
  return html`<form method="post" action="${action}">
<input type="hidden" name="${formTokenField}" value="${visit.formToken}">
${content}
</form>`;
}

interface Field {
  readonly name: string;
  readonly label: string;
  readonly type?: 'text' | 'email' | 'password';
  /** @see https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#autofill */
  readonly autocomplete: string;
  /** Passwords and codes are never sent back. */
  readonly value?: string | undefined;
  readonly hint?: string | undefined;
  readonly inputMode?: 'numeric' | undefined;
  readonly isOptional?: boolean;
}

const summaryId = 'problem';

/** An input with its label and hint. */
export function field(
  { name, label, type = 'text', autocomplete, value = '', hint, inputMode, isOptional = false }: Field,
  problem?: Problem,
): Html {
  const isInvalid = problem?.field === name;
  const described = [
    ...(hint === undefined ? [] : [`${name}-hint`]),
    // The summary has the text.
    ...(isInvalid ? [summaryId] : []),
  ].join(' ');
  return html`<div class="field">
<label for="${name}">${label}</label>
${hint !== undefined && html`<p class="hint" id="${name}-hint">${hint}</p>`}
<input id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" value="${value}"${
    inputMode !== undefined && html` inputmode="${inputMode}"`
  }${type === 'email' && html` autocapitalize="none" spellcheck="false"`}${!isOptional && html` required`}${
    described !== '' && html` aria-describedby="${described}"`
  }${isInvalid && html` aria-invalid="true"`}>
</div>`;
}

/** The code that was sent to the user. */
export function sentCodeField(
  input: Pick<Field, 'label'> & { readonly name?: 'code' | 'nonce' },
  problem: Problem | undefined,
): Html {
  return field({ name: 'code', autocomplete: 'one-time-code', inputMode: 'numeric', ...input }, problem);
}

/** The code of the form. Users copy spaces, too. */
export function readCode({ form: { code = '' } }: Visit): string {
  return code.replaceAll(/\s/g, '');
}

/** The email address of an account that exists. */
export function accountEmailField({ texts, form: { email } }: Visit, problem: Problem | undefined): Html {
  const name = 'email';
  return field(
    { name, label: texts.emailAddress, type: 'email', autocomplete: 'username', value: email },
    problem,
  );
}

/** The summary of what is wrong, which gets the focus. A link leads to the field. */
export function problemSummary(problem: Problem | undefined): Html | undefined {
  if (problem === undefined) return undefined;
  const { field: name, message } = problem;
  return html`<div class="summary" id="${summaryId}" role="alert" tabindex="-1" autofocus>${
    name === undefined ? html`<p>${message}</p>` : html`<p><a href="#${name}">${message}</a></p>`
  }</div>`;
}

export function notice(text: string | undefined): Html | undefined {
  return text === undefined ? undefined : html`<div class="notice" role="status"><p>${text}</p></div>`;
}

/** The current password, which a sensitive change asks for. */
export function currentPasswordField(
  { currentPassword: label }: PageTexts,
  problem: Problem | undefined,
): Html {
  const autocomplete = 'current-password';
  return field({ name: 'current_password', label, type: 'password', autocomplete }, problem);
}
