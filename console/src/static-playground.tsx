/** The playground as a static page: no server, no token. */
import './styles/base.css'
import './styles/layout.css'
import './styles/controls.css'
import './styles/playground.css'
import { render } from 'preact'
import { Playground } from './pages/playground/playground.js'
import { Logo, Preferences } from './ui/navigation.js'
import { Toasts } from './ui/toast.js'

const root = document.getElementById('app')
if (root !== null)
  render(
    <main>
      <div class="page-head">
        <Logo />
        <span class="spacer" />
        <Preferences />
      </div>
      <Playground />
      <Toasts />
    </main>,
    root,
  )
