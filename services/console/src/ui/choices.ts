import { type Html, html } from '@tollgate/kit/html';

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
