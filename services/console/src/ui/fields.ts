import { type Html, html } from '@tollgate/kit/html';

interface FieldOptions {
  readonly name: string;
  readonly label: string;
  readonly value?: string;
  /** Says what may be entered. */
  readonly hint?: string;
  readonly isRequired?: boolean;
  readonly type?: 'text' | 'number' | 'datetime-local' | 'password';
  readonly placeholder?: string;
  /** Texts by value. The field is a choice, then. */
  readonly choices?: Readonly<Record<string, string>>;
  /** Takes the space that is left in its line. */
  readonly isWide?: boolean;
  /** The field has several lines, then. */
  readonly isLong?: boolean;
}

/** A field of a form that changes something. */
export function field({ name, label, hint, ...options }: FieldOptions): Html {
  const hintId = hint !== undefined && `${name}-hint`;
  const attributes = html` id="field-${name}" name="${name}"${hintId && html` aria-describedby="${hintId}"`}${options.isRequired && html` required`}`;
  return html`<div class="field${options.isWide && ' wide'}"><label for="field-${name}">${label}</label>${input(attributes, options)}${hintId && html`<span class="dim" id="${hintId}">${hint}</span>`}</div>`;
}

function input(
  attributes: Html,
  {
    value = '',
    type = 'text',
    placeholder = '',
    choices,
    isLong = false,
  }: Omit<FieldOptions, 'name' | 'label' | 'hint' | 'isWide'>,
): Html {
  if (choices !== undefined)
    return html`<select${attributes}>${Object.entries(choices).map(
      ([choice, text]) =>
        html`<option value="${choice}"${choice === value && html` selected`}>${text}</option>`,
    )}</select>`;
  if (isLong)
    return html`<textarea${attributes} placeholder="${placeholder}" spellcheck="false">${value}</textarea>`;
  return html`<input type="${type}"${attributes} value="${value}" placeholder="${placeholder}" autocomplete="${type === 'password' ? 'new-password' : 'off'}">`;
}

interface ChoicesOptions {
  readonly name: string;
  readonly label: string;
  /** Texts by value. */
  readonly choices: Readonly<Record<string, string>>;
  readonly chosen: readonly string[];
}

/** A field of a form with any number of choices. */
export function choicesField({ name, label, choices, chosen }: ChoicesOptions): Html {
  return html`<fieldset class="choices"><legend>${label}</legend>${Object.entries(choices).map(
    ([value, text]) =>
      html`<label><input type="checkbox" name="${name}" value="${value}"${chosen.includes(value) && html` checked`}> ${text}</label>`,
  )}</fieldset>`;
}
